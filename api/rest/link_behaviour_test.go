package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// decoded returns the value of a JSON text as answers have it.
func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	testkit.Must(t, json.Unmarshal([]byte(`{"value":`+text+`}`), &struct{ Value *any }{&value}))
	return value
}

func TestLinkBehaviour(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	const path = "/api/v1/links/extended"
	fields := func(fields map[string]string) map[string]any {
		body := map[string]any{}
		for name, text := range fields {
			body[name] = json.RawMessage(text)
		}
		return body
	}
	want := func(t *testing.T, fields map[string]string) {
		t.Helper()
		link := owner.get(t, path).fullLink(t)
		for name, text := range fields {
			got, err := json.Marshal(link[name])
			testkit.Must(t, err)
			again, err := json.Marshal(decoded(t, text))
			testkit.Must(t, err)
			testkit.Equal(t, name, string(got), string(again))
		}
	}
	const rules = `[{"name":"phones","if":{"device":["mobile","tablet"],"os":["iOS"],"browser":["Safari"],
		"language":["de","fr-CH"],
		"country":["AT"],"query":{"ref":"a&b","utm":"*"},
		"from":"2030-01-01T00:00:00+00:00","until":"2031-01-01T00:00:00+00:00"},
		"url":"https://m.example.com/ü?<&>"},
		{"name":"late","if":{"from":"2032-01-01T00:00:00+00:00"},"url":"https://late.example/"}]`
	const variants = `[{"name":"a","url":"https://example.com/a","weight":1},{"name":"b","url":"https://example.com/b",` +
		`"weight":99}]`
	const card = `{"title":"Überschrift <b>","description":"","image":"https://example.com/i.png"}`
	all := map[string]string{"rules": rules, "variants": variants, "card": card}

	t.Run("POST shorten takes rules, variants and a card", func(t *testing.T) {
		body := fields(all)
		body["long_url"], body["custom_alias"] = anyURL, "extended"
		owner.shorten(t, body).wantKeys(t, http.StatusCreated, "success", "short_url", "original_url", "hash", "created_at")
		want(t, all)
	})
	t.Run("PATCH links/{hash} changes the parts that it is given", func(t *testing.T) {
		all["rules"] = `[{"name":"evening","if":{"until":"2030-01-01T00:00:00+01:00"},"url":"https://evening.example/"}]`
		owner.patch(t, path, `{"rules":`+all["rules"]+`}`).fullLink(t)
		all["rules"] = `[{"name":"evening","if":{"until":"2029-12-31T23:00:00+00:00"},"url":"https://evening.example/"}]`
		want(t, all)
		owner.patch(t, path, `{"title":"other"}`).fullLink(t)
		want(t, all)
		owner.patch(t, path, `{"card":null,"variants":null}`).fullLink(t)
		all["card"], all["variants"] = "null", "null"
		want(t, all)
		owner.patch(t, path, `{"variants":`+variants+`,"rules":[]}`).fullLink(t)
		all["rules"], all["variants"] = "[]", variants
		want(t, all)
		owner.patch(t, path, `{"rules":`+rules+`}`).fullLink(t)
		owner.patch(t, path, `{"rules":null}`).fullLink(t)
		want(t, all)
	})
	t.Run("password is taken and cleared, and never shown", func(t *testing.T) {
		const secret = "open sesame ü"
		for _, change := range []struct {
			body string
			has  bool
		}{{`{"password":"` + secret + `"}`, true}, {`{"title":"again"}`, true},
			{`{"card":` + card + `,"password":"abcd"}`, true},
			{`{"password":null}`, false}, {`{"password":"` + strings.Repeat("ü", 128) + `"}`, true},
			{`{"variants":null}`, true}} {
			a := owner.patch(t, path, change.body)
			testkit.Equal(t, change.body, a.fullLink(t)["has_password"], any(change.has))
			if strings.Contains(a.raw, "argon2") || strings.Contains(a.raw, `"password"`) {
				t.Error(a.raw)
			}
		}
		for _, wrong := range []string{`"abc"`, `"` + strings.Repeat("ü", 129) + `"`, `12345`, `""`, `"a\u0000bcd"`,
			`["abcd"]`} {
			owner.patch(t, path, `{"password":`+wrong+`}`).wantInvalid(t, "password")
		}
	})
	t.Run("max_clicks is taken and cleared, and clicks_left is what visitors have not used", func(t *testing.T) {
		a := owner.patch(t, path, `{"max_clicks":5}`)
		wantLink(t, a.fullLink(t), map[string]any{"max_clicks": json.Number("5"), "clicks_left": json.Number("5")})
		link, err := schema.FindLink(t.Context(), s.links, 0, "extended")
		testkit.Must(t, err)
		holder := schema.Incarnation{1}
		testkit.Must(t, s.links.AddLeaseHolder(t.Context(), holder))
		lease, err := s.links.TakeLease(t.Context(), holder, schema.LimitLease{LinkID: link.ID, Call: 1})
		testkit.Must(t, err)
		lease.Call, lease.Spent = 2, 1
		testkit.Must(t, s.links.StateLeases(t.Context(), holder, []schema.LimitLease{lease}))
		wantLink(t, owner.get(t, path).fullLink(t), map[string]any{"clicks_left": json.Number("4")})
		a = owner.patch(t, path, `{"max_clicks":null}`)
		wantLink(t, a.fullLink(t), map[string]any{"max_clicks": nil, "clicks_left": nil})
	})
	t.Run("POST links/bulk takes up to 100 passwords", func(t *testing.T) {
		links := make([]string, 102)
		for i := range links {
			target := "nothing" // only the first and the last link are right, so that few passwords are hashed
			if i%101 == 0 {
				target = anyURL
			}
			links[i] = fmt.Sprintf(`{"long_url":%q,"password":"secret %d"}`, target, i%101)
		}
		a := owner.request(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[`+strings.Join(links, ",")+`]}`)
		a.want(t, http.StatusOK)
		for i, result := range a.body["results"].([]any) {
			wrong, _ := result.(map[string]any)["errors"].(map[string]any)
			if tooMany := wrong[fmt.Sprintf("links.%d.password", i)] != nil; tooMany != (i == 100) ||
				(wrong == nil) != (i%101 == 0) {
				t.Errorf("link %d: %v", i, result)
			}
		}
		hash := a.body["results"].([]any)[101].(map[string]any)["hash"].(string)
		testkit.Equal(t, "has_password", owner.get(t, "/api/v1/links/"+hash).fullLink(t)["has_password"], any(true))
	})
	t.Run("POST links/bulk takes them, and names their problems", func(t *testing.T) {
		a := owner.request(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[{"long_url":"https://example.com/","card":`+
			card+`},
			{"long_url":"https://example.com/","rules":[{"name":"a","if":{"weather":["rain"]},"url":"https://example.com/"}]}]}`)
		a.want(t, http.StatusOK)
		results := a.body["results"].([]any)
		testkit.Equal(t, "success", results[0].(map[string]any)["success"], any(true))
		errs, _ := results[1].(map[string]any)["errors"].(map[string]any)
		if len(errs) != 1 || errs["links.1.rules.0.if.weather"] == nil {
			t.Error(a.raw)
		}
	})
}

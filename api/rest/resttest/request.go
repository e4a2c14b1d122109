package resttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// blank has an empty string in each optional field of the additions to a link, as a form sends it.
const blank = `"title":"","tags":"","expires_at":"","expired_url":"","forward_query":"","rules":"","variants":"",` +
	`"password":"","max_clicks":"","card":""`

// testForms tests what forms send for fields that were not filled in.
func testForms(t *testing.T, s System) {
	owner := s.account(t)
	plain := func(t *testing.T, made Object) {
		t.Helper()
		link := owner.link(t, made["hash"])
		got := fmt.Sprint(link["title"], link["tags"], link["expires_at"], link["expired_url"], link["forward_query"],
			link["rules"], link["variants"], link["has_password"], link["max_clicks"], link["card"])
		testkit.Equal(t, "link", got, "[] <nil> <nil> false [] <nil> false <nil> <nil>")
	}
	for name, body := range map[string]string{
		"all fields":               goodBody[:len(goodBody)-1] + "," + blank + "}",
		"all fields of a card":     `{"long_url":"https://example.com/","card":{"title":"","description":"","image":""}}`,
		"a card of nulls and more": `{"long_url":"https://example.com/","card":{"title":"","image":null}}`,
	} {
		t.Run("an empty string in an optional field counts as missing: "+name, func(t *testing.T) {
			plain(t, owner.Call(t, http.MethodPost, "/api/v1/shorten", body).Want(t, http.StatusCreated).Body)
			bulk := owner.Call(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[`+body+`]}`).Want(t, http.StatusOK).Body
			plain(t, bulk["results"].([]any)[0].(Object))
		})
	}
	t.Run("a card may have empty optional fields", func(t *testing.T) {
		made := owner.Link(t, Object{"long_url": "https://example.com/",
			"card": Object{"title": "T", "description": "", "image": ""}})
		testkit.Equal(t, "card", fmt.Sprint(owner.link(t, made["hash"])["card"]), "map[description: image:<nil> title:T]")
	})
	t.Run("a webhook and a share may have empty optional fields", func(t *testing.T) {
		path := hookPath(t, owner.Caller, goodHook[:len(goodHook)-1]+`,"hash":"","domain_id":"","tag":"","people_only":"",`+
			`"is_active":""}`)
		hook := owner.Get(t, path).Body["webhook"].(Object)
		testkit.Equal(t, "webhook", fmt.Sprint(hook["hash"], hook["domain_id"], hook["tag"], hook["people_only"],
			hook["is_active"]), "<nil> <nil> <nil> true true")
		path, _ = owner.Share(t, `{"hash":"","tag":"","domain_id":"","expires_at":"","password":"","hide_targets":""}`)
		share := owner.Get(t, path).Body["share"].(Object)
		testkit.Equal(t, "share", fmt.Sprint(share["hash"], share["domain_id"], share["tag"], share["expires_at"],
			share["has_password"], share["hide_targets"]), "<nil> <nil> <nil> <nil> false false")
	})
	t.Run("a required field must not be empty", func(t *testing.T) {
		owner.Call(t, http.MethodPost, "/api/v1/webhooks", `{"url":"","events":""}`).
			WantError(t, http.StatusUnprocessableEntity, "url", "events")
		owner.Call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/","card":{"title":"",`+
			`"description":"x"}}`).WantError(t, http.StatusUnprocessableEntity, "card.title")
	})
	t.Run("in an edit an empty string is a value, and null clears", func(t *testing.T) {
		made := owner.Link(t, Object{"long_url": "https://example.com/", "title": "T", "expires_at": "2099-01-01T00:00:00Z"})
		path := "/api/v1/links/" + made["hash"].(string)
		owner.Call(t, http.MethodPatch, path, "{"+blank+"}").WantError(t, http.StatusUnprocessableEntity, "tags",
			"expires_at", "expired_url", "forward_query", "rules", "variants", "password", "max_clicks", "card")
		link := owner.Call(t, http.MethodPatch, path, `{"title":"","expires_at":null}`).Want(t, http.StatusOK).
			Body["link"].(Object)
		testkit.Equal(t, "link", fmt.Sprint(link["title"], link["expires_at"]), "<nil>")
	})
}

// link returns the full link with a hash.
func (c Caller) link(t *testing.T, hash any) Object {
	t.Helper()
	return c.Get(t, "/api/v1/links/"+hash.(string)).Want(t, http.StatusOK).Body["link"].(Object)
}

// testDefaultDomain tests that 0 names the default domain wherever a domain_id is accepted.
func testDefaultDomain(t *testing.T, s System) {
	owner, alias := s.account(t), label()
	s.domain(t, owner)
	for _, id := range []string{"0", "-0", "null"} {
		body := `{"long_url":"https://example.com/","domain_id":` + id + `}`
		made := owner.Call(t, http.MethodPost, "/api/v1/shorten", body).Want(t, http.StatusCreated).Body
		bulk := owner.Call(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[`+body+`]}`).Want(t, http.StatusOK).Body
		for _, link := range []Object{made, bulk["results"].([]any)[0].(Object)} {
			testkit.Equal(t, "short_url with domain_id "+id, link["short_url"], any(s.Short+"/"+link["hash"].(string)))
		}
	}
	owner.Link(t, Object{"long_url": "https://example.com/", "custom_alias": alias, "domain_id": 0})
	path := "/api/v1/links/" + alias
	owner.Get(t, "/api/v1/stats/"+alias+"?domain_id=0").Want(t, http.StatusOK)
	owner.Get(t, path+"/report?domain_id=0").Want(t, http.StatusOK)
	owner.Get(t, "/api/v1/report?domain_id=0").Want(t, http.StatusOK)
	items, _ := owner.Page(t, "?domain_id=0&q="+alias)
	testkit.Equal(t, "links in the list", len(items), 1)
	owner.Call(t, http.MethodPatch, path+"?domain_id=0", `{"title":"T"}`).Want(t, http.StatusOK)
	named := `"hash":"` + alias + `","domain_id":0`
	hook := owner.Get(t, hookPath(t, owner.Caller, goodHook[:len(goodHook)-1]+","+named+"}")).Body["webhook"].(Object)
	testkit.Equal(t, "webhook", fmt.Sprint(hook["hash"], hook["domain_id"]), alias+"<nil>")
	owner.Share(t, "{"+named+"}")
	for _, call := range []string{`/edit", "set":{"title":"U"}`, `/delete"`} {
		action, set, _ := strings.Cut(call, `"`)
		changed := owner.Call(t, http.MethodPost, "/api/v1/links/bulk"+action, `{"links":[{`+named+`}]`+set+`}`)
		testkit.Equal(t, "changed by "+action, Number(t, changed.Want(t, http.StatusOK).Body, "changed"), int64(1))
	}
	owner.Call(t, http.MethodPost, path+"/restore?domain_id=0", "").Want(t, http.StatusOK)
	owner.Call(t, http.MethodDelete, path+"?domain_id=0", "").Want(t, http.StatusOK)
}

// testTimes tests the forms of ISO 8601 in bodies. Package schema has all forms.
func testTimes(t *testing.T, s System) {
	owner := s.account(t)
	hash := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"].(string)
	path := "/api/v1/links/" + hash
	const want = "2099-09-04T07:48:00+00:00"
	for _, text := range []string{"2099-09-04T10:48:00+03:00", "2099-09-04T10:48:00+0300", "2099-09-04T10:48:00+03",
		"2099-09-04T07:48:00Z", "2099-09-04t07:48:00z", "2099-09-04T07:48Z", "2099-09-04T07:48:00.999Z",
		"2099-09-04T07:48:00,5Z", "20990904T104800+0300", "2099-09-04 10:48:00+03:00"} {
		t.Run("accepted: "+text, func(t *testing.T) {
			made := owner.Link(t, Object{"long_url": "https://example.com/", "expires_at": text})
			testkit.Equal(t, "expires_at", owner.link(t, made["hash"])["expires_at"], any(want))
			owner.Call(t, http.MethodPatch, path, `{"expires_at":null}`).Want(t, http.StatusOK)
			rule, err := json.Marshal(Object{"expires_at": text, "rules": []any{Object{"name": "r",
				"url": "https://example.com/r", "if": Object{"from": text}}}})
			testkit.Must(t, err)
			link := owner.Call(t, http.MethodPatch, path, string(rule)).Want(t, http.StatusOK).Body["link"].(Object)
			testkit.Equal(t, "expires_at", link["expires_at"], any(want))
			testkit.Equal(t, "rules", fmt.Sprint(link["rules"]), "[map[if:map[from:"+want+"] name:r url:https://example.com/r]]")
			share, _ := owner.Share(t, `{"expires_at":"`+text+`"}`)
			testkit.Equal(t, "share", owner.Get(t, share).Body["share"].(Object)["expires_at"], any(want))
			owner.Call(t, http.MethodDelete, share, "")
		})
	}
	for _, text := range []string{"2099-09-04T10:48:00+14:01", "2099-W36-6T10:48:00Z", "2099-247T10:48:00Z", "2099-09-04",
		"2099-09-04T10:48:00", "2099-09-31T10:48:00Z", "2099-09-04T10:48:60Z"} {
		t.Run("refused: "+text, func(t *testing.T) {
			owner.Shorten(t, Object{"long_url": "https://example.com/", "expires_at": text}).
				WantError(t, http.StatusUnprocessableEntity, "expires_at")
			owner.Call(t, http.MethodPatch, path, `{"expires_at":"`+text+`"}`).
				WantError(t, http.StatusUnprocessableEntity, "expires_at")
		})
	}
}

// testDays tests reports of days that zones have skipped, or whose 00:00 does not come once. Package clickreport has
// all zones.
func testDays(t *testing.T, s System) {
	owner := s.account(t)
	path := "/api/v1/links/" + owner.Link(t, Object{"long_url": "https://example.com/"})["hash"].(string) + "/report"
	for _, c := range []struct {
		zone, from, to string
		days, hours    int
	}{
		{"Pacific/Apia", "2011-12-31", "2011-12-31", 1, 24}, {"Pacific/Apia", "2011-12-30", "2011-12-30", 0, 0},
		{"Pacific/Apia", "2011-12-29", "2011-12-31", 2, 48}, {"Pacific/Kwajalein", "1993-08-22", "1993-08-22", 1, 24},
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04", 1, 23}, {"Asia/Beirut", "2026-03-29", "2026-03-29", 1, 23},
		{"Asia/Amman", "2021-10-29", "2021-10-29", 1, 25}, {"Atlantic/Azores", "2026-10-25", "2026-10-26", 2, 49},
	} {
		for interval, want := range map[string]int{"day": c.days, "hour": c.hours} {
			query := "?tz=" + c.zone + "&from=" + c.from + "&to=" + c.to + "&interval=" + interval
			for _, report := range []string{path, "/api/v1/report"} {
				body := owner.Get(t, report+query).Want(t, http.StatusOK).Body
				testkit.Equal(t, report+query, len(body["series"].([]any)), want)
				testkit.Equal(t, "days", fmt.Sprintf("%v %v", body["from"], body["to"]), c.from+" "+c.to)
			}
		}
	}
}

// testBodies tests bodies that say nothing, and bodies in another form than JSON.
func testBodies(t *testing.T, s System) {
	owner := s.account(t)
	hash := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"].(string)
	requests := []struct {
		method, path string
		fields       []string // that an empty body lacks
	}{
		{http.MethodPost, "/api/v1/shorten", []string{"long_url"}},
		{http.MethodPost, "/api/v1/links/bulk", []string{"links"}},
		{http.MethodPost, "/api/v1/links/bulk/edit", []string{"links"}},
		{http.MethodPost, "/api/v1/links/bulk/delete", []string{"links"}},
		{http.MethodPost, "/api/v1/webhooks", []string{"url", "events"}},
		{http.MethodPatch, "/api/v1/links/" + hash, []string{"body"}},
		{http.MethodPatch, hookPath(t, owner.Caller, goodHook), []string{"url"}},
	}
	const form = "application/x-www-form-urlencoded"
	for _, r := range requests {
		for name, body := range map[string]string{"nothing": "", "white space": " \t\r\n", "a byte order mark": "\ufeff",
			"an object without fields": "{}"} {
			t.Run(r.method+" "+r.path+" with "+name, func(t *testing.T) {
				types := []string{"application/json"}
				if body == "" {
					types = append(types, "", form) // what clients add to no body
				}
				for _, contentType := range types {
					owner.Call(t, r.method, r.path, body, "Content-Type", contentType).
						WantError(t, http.StatusUnprocessableEntity, r.fields...)
				}
			})
		}
		t.Run(r.method+" "+r.path+" with another coding or type", func(t *testing.T) {
			for _, coding := range []string{"gzip", "x-gzip", "deflate", "br", "zstd", "identity, GZIP", "utf-8"} {
				a := owner.Call(t, r.method, r.path, goodBody, "Content-Encoding", coding).
					WantError(t, http.StatusUnsupportedMediaType)
				testkit.Equal(t, "Accept-Encoding", a.Header.Get("Accept-Encoding"), "identity")
				if message, _ := a.Body["message"].(string); !strings.Contains(message, "Content-Encoding") {
					t.Errorf("%v", a)
				}
			}
			for _, contentType := range []string{"", form, "text/json", "text/plain", "application/jsonp"} {
				owner.Call(t, r.method, r.path, goodBody, "Content-Type", contentType).
					WantError(t, http.StatusUnsupportedMediaType)
			}
			for _, body := range []string{"[]", `"x"`, "5", "null", "{", "a=b", "\xff\xfe{\x00}\x00", "\ufeff\ufeff{}"} {
				owner.Call(t, r.method, r.path, body).WantError(t, http.StatusBadRequest)
			}
		})
	}
	for _, coding := range []string{"identity", "Identity"} {
		owner.Call(t, http.MethodPost, "/api/v1/shorten", goodBody, "Content-Encoding", coding).Want(t, http.StatusCreated)
	}
	for _, charset := range []string{"utf-8", "UTF-8", `"utf-8"`, "us-ascii", "iso-8859-1"} { // without a meaning in JSON
		owner.Call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/ä"}`, "Content-Type",
			"application/json; charset="+charset).Want(t, http.StatusCreated)
	}
}

// testMessages tests that messages are English sentences about what is wrong.
func testMessages(t *testing.T, s System) {
	owner := s.account(t)
	hash := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"].(string)
	unsafe := "https://" + UnsafeHost + "/"
	for field, noun := range map[string]string{"long_url": "long URL", "expired_url": "expired URL"} {
		body := Object{"long_url": "https://example.com/", field: unsafe}
		testkit.Equal(t, "message of an unsafe "+field, owner.Shorten(t, body).Body["message"],
			any("The "+noun+" leads to a host that is known as unsafe."))
	}
	const rule = `{"long_url":"https://example.com/","rules":[{"name":"a","if":{"from":1},"url":%s}]}`
	edit := "/api/v1/links/" + hash
	for _, c := range []struct{ method, path, body, field, message string }{
		{"POST", "/api/v1/shorten", `{}`, "long_url", "A long URL is required."},
		{"POST", "/api/v1/shorten", `{"long_url":"x:"}`, "long_url", "The long URL must begin with http:// or https://."},
		{"POST", "/api/v1/shorten", `{"expired_url":"x:"}`, "expired_url",
			"The expired URL must begin with http:// or https://."},
		{"POST", "/api/v1/shorten", `{"expired_url":"http://a..b"}`, "expired_url",
			"The host of the expired URL is not valid."},
		{"POST", "/api/v1/shorten", fmt.Sprintf(rule, `""`), "rules.0.url", "A URL is required."},
		{"POST", "/api/v1/shorten", fmt.Sprintf(rule, `"http://localhost"`), "rules.0.url",
			"The URL must not lead to this service itself, or to localhost."},
		{"POST", "/api/v1/links/bulk", `{}`, "links", "The links must be an array of 1 to 1000 objects."},
		{"PATCH", edit, `{}`, "body", "At least one field of the link is required."},
		{"PATCH", edit, `{"long_url":""}`, "long_url", "A long URL is required."},
		{"PATCH", edit, `{"expired_url":""}`, "expired_url", "The expired URL must not be empty: null removes it."},
		{"POST", "/api/v1/webhooks", `{}`, "url", "This is required."},
	} {
		a := owner.Call(t, c.method, c.path, c.body).Want(t, http.StatusUnprocessableEntity)
		got, _ := a.Body["errors"].(Object)[c.field].([]any)
		if !slices.Equal(got, []any{c.message}) {
			t.Errorf("%s %s: got %q on %s, want %q", c.method, c.body, got, c.field, c.message)
		}
	}
}

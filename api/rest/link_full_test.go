package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// fullLink requires an answer with a link and returns the link.
func (a answer) fullLink(t *testing.T) map[string]any {
	t.Helper()
	a.wantKeys(t, http.StatusOK, "success", "link")
	link, _ := a.body["link"].(map[string]any)
	if a.body["success"] != true || link == nil {
		t.Fatal(a.raw)
	}
	return link
}

// wantLink requires these fields of a link, among others.
func wantLink(t *testing.T, link, want map[string]any) {
	t.Helper()
	for field, value := range want {
		if !cmp.Equal(link[field], value) {
			t.Errorf("%s is %#v, want %#v", field, link[field], value)
		}
	}
}

func (c caller) patch(t *testing.T, path, body string) answer {
	t.Helper()
	return c.request(t, http.MethodPatch, path, body)
}

const anyURL = "https://example.com/"

// isoTime is ISO 8601 with a numeric UTC offset, so not Z.
var isoTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$`)

func TestFullLink(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	domain := owner.addDomain(t, "go.example.org", true)
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "bare"})
	t.Run("GET links/{hash}: a link without anything has exactly these fields", func(t *testing.T) {
		link := owner.get(t, "/api/v1/links/bare").fullLink(t)
		want := map[string]any{"hash": "bare", "short_url": edgeURL + "/bare", "original_url": anyURL, "domain_id": nil,
			"title": "", "former_hashes": []any{},
			"tags": []any{}, "is_active": true, "expires_at": nil, "expired_url": nil, "forward_query": false, "rules": []any{},
			"variants": nil, "card": nil, "has_password": false, "max_clicks": nil, "path_mode": "none", "clicks_left": nil,
			"external_id": nil,
			"clicks":      json.Number("0")}
		wantLink(t, link, want)
		if at, _ := link["created_at"].(string); len(link) != len(want)+2 || !isoTime.MatchString(at) ||
			link["updated_at"] != at {
			t.Errorf("%v", link)
		}
	})
	t.Run("a link without a path mode has its domain's", func(t *testing.T) {
		path := fmt.Sprintf("/api/v1/links/ruled?domain_id=%d", domain)
		owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "ruled", "domain_id": domain})
		for mode, want := range map[schema.PathMode]any{"append": "append", "ignore": "ignore", "none": "none", "": "none"} {
			testkit.Must(t, s.links.SetSite(t.Context(), domain, schema.Site{PathMode: mode}, schema.AppLinks{}))
			testkit.Equal(t, "mode", owner.get(t, path).fullLink(t)["path_mode"], want)
		}
	})
	t.Run("POST shorten takes the further fields, and answers none of them", func(t *testing.T) {
		a := owner.shorten(t, map[string]any{"long_url": anyURL, "custom_alias": "full", "domain_id": domain,
			"title": "Titel ü",
			"tags":  []string{"b", "a-1"}, "expires_at": "2099-01-01T02:00:00.9+02:00", "expired_url": "https://late.example/",
			"forward_query": true})
		a.wantKeys(t, http.StatusCreated, "success", "short_url", "original_url", "hash", "created_at")
		wantLink(t, owner.get(t, "/api/v1/links/full").fullLink(t), map[string]any{
			"short_url": "https://go.example.org/full", "title": "Titel ü", "tags": []any{"a-1", "b"},
			"expires_at": "2099-01-01T00:00:00+00:00", "expired_url": "https://late.example/", "forward_query": true})
		owner.link(t, map[string]any{"long_url": anyURL, "title": nil, "tags": nil, "expires_at": nil, "expired_url": nil,
			"forward_query": nil})
	})
	t.Run("domain_id picks the domain; without it the default domain comes first", func(t *testing.T) {
		owner.link(t, map[string]any{"long_url": "https://example.com/default", "custom_alias": "full"})
		for query, want := range map[string]string{"": "https://example.com/default",
			"?domain_id=0": "https://example.com/default", fmt.Sprint("?domain_id=", domain): anyURL} {
			wantLink(t, owner.get(t, "/api/v1/links/full"+query).fullLink(t), map[string]any{"original_url": want})
		}
		owner.get(t, "/api/v1/links/full?domain_id=x").wantInvalid(t, "domain_id")
	})
	t.Run("a link of someone else, or none, is 404 with error = not_found", func(t *testing.T) {
		for _, path := range []string{"/api/v1/links/bare", "/api/v1/links/none", "/api/v1/links/%2f",
			"/api/v1/links/bare?domain_id=7"} {
			for method, body := range map[string]string{http.MethodGet: "", http.MethodPatch: `{"title":"x"}`,
				http.MethodDelete: ""} {
				a := other.request(t, method, path, body)
				a.wantKeys(t, http.StatusNotFound, "error", "message")
				if a.body["error"] != "not_found" {
					t.Error(a.raw)
				}
			}
		}
		owner.get(t, "/api/v1/links/bare").fullLink(t)
	})
}

func TestEditLink(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "edited"})
	const path = "/api/v1/links/edited"
	last := owner.get(t, path).fullLink(t)
	for _, step := range []struct {
		body string
		want map[string]any
	}{
		{`{"title":"A <title>"}`, map[string]any{"title": "A <title>"}},
		{`{"tags":["z","a"],"unknown":1}`, map[string]any{"tags": []any{"a", "z"}}},
		{`{"long_url":"https://new.example/ü"}`, map[string]any{"original_url": "https://new.example/ü"}},
		{`{"is_active":false}`, map[string]any{"is_active": false}},
		{`{"expires_at":"2098-07-01T00:00:00+02:00"}`, map[string]any{"expires_at": "2098-06-30T22:00:00+00:00"}},
		{`{"expired_url":"https://late.example/","forward_query":true}`,
			map[string]any{"expired_url": "https://late.example/", "forward_query": true}},
		{`{"expires_at":null}`, map[string]any{"expires_at": nil}},
		{`{"expired_url":null,"title":"","tags":[],"is_active":true}`,
			map[string]any{"expired_url": nil, "title": "", "tags": []any{}, "is_active": true}},
	} {
		t.Run("PATCH links/{hash} changes the given fields only: "+step.body, func(t *testing.T) {
			link := owner.patch(t, path, step.body).fullLink(t)
			for field, value := range step.want {
				last[field] = value
			}
			at, err := time.Parse(time.RFC3339, link["updated_at"].(string))
			if err != nil || time.Since(at) > time.Minute {
				t.Errorf("updated_at %v: %v", at, err)
			}
			last["updated_at"] = link["updated_at"]
			testkit.Equal(t, "answer", link, last)
			testkit.Equal(t, "link", owner.get(t, path).fullLink(t), last)
		})
	}
	past := time.Now().Add(-2 * time.Second).Format(time.RFC3339)
	for body, fields := range map[string][]string{
		`{}`: {"body"}, `{"unknown":1}`: {"body"}, `{"long_url":null}`: {"long_url"}, `{"long_url":"x"}`: {"long_url"},
		`{"title":null}`: {"title"}, `{"title":7}`: {"title"}, `{"title":"` + strings.Repeat("ü", 201) + `"}`: {"title"},
		`{"title":"a\u0000"}`: {"title"}, `{"tags":null}`: {"tags"}, `{"tags":"a"}`: {"tags"}, `{"tags":["a","a"]}`: {"tags"},
		`{"tags":["A"]}`: {"tags"}, `{"tags":[""]}`: {"tags"}, `{"tags":[null]}`: {"tags"}, `{"tags":["ü"]}`: {"tags"},
		`{"tags":["1","2","3","4","5","6","7","8","9","10","11"]}`: {"tags"}, `{"tags":["` + strings.Repeat("a", 33) +
			`"]}`: {"tags"},
		`{"is_active":null}`: {"is_active"}, `{"is_active":1}`: {"is_active"}, `{"forward_query":null}`: {"forward_query"},
		`{"expires_at":"` + past + `"}`: {"expires_at"}, `{"expires_at":"2099-01-01"}`: {"expires_at"},
		`{"expires_at":4102444800}`:                  {"expires_at"},
		`{"expires_at":"9999-12-31T23:59:59-14:00"}`: {"expires_at"}, `{"expired_url":""}`: {"expired_url"},
		`{"expired_url":"ftp://x"}`: {"expired_url"}, `{"expired_url":"https://sho.rt/x"}`: {"expired_url"},
		`{"title":1,"tags":1,"long_url":1,"is_active":"x","expires_at":1,"expired_url":1,"forward_query":1}`: {"title",
			"tags", "long_url", "is_active", "expires_at", "expired_url", "forward_query"},
		`{"title":"` + strings.Repeat("x", 201) + `","tags":["A"],"long_url":"x","expires_at":"` + past +
			`"}`: {"title", "tags", "long_url", "expires_at"},
	} {
		t.Run("PATCH links/{hash}: all invalid fields give one 422: "+body, func(t *testing.T) {
			owner.patch(t, path, body).wantInvalid(t, fields...)
			testkit.Equal(t, "link", owner.get(t, path).fullLink(t), last)
		})
	}
	t.Run("an unsafe long_url or expired_url gives 422 with error = unsafe_url", func(t *testing.T) {
		for _, body := range []string{`{"long_url":"http://bad.example"}`, `{"expired_url":"http://bad.example"}`} {
			a := owner.patch(t, path, body)
			a.wantKeys(t, http.StatusUnprocessableEntity, "error", "message")
		}
	})
	t.Run("the body must be a JSON object", func(t *testing.T) {
		owner.patch(t, path, "[]").wantKeys(t, http.StatusBadRequest, "message")
		a := owner.request(t, http.MethodPatch, path, "{}", "Content-Type", "text/plain")
		a.wantKeys(t, http.StatusUnsupportedMediaType, "message")
	})
	t.Run("POST shorten: the further fields are validated too", func(t *testing.T) {
		owner.shorten(t, map[string]any{"long_url": anyURL, "title": 1, "tags": []int{1}, "expires_at": past,
			"expired_url":   "x",
			"forward_query": "yes"}).wantInvalid(t, "title", "tags", "expires_at", "expired_url", "forward_query")
	})
}

func TestDeleteLink(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	fields := map[string]any{"long_url": anyURL, "custom_alias": "gone"}
	owner.link(t, fields)
	link, err := schema.FindLink(t.Context(), s.links, 0, "gone")
	testkit.Must(t, err)
	s.click(t, link.ID, 1)
	const path = "/api/v1/links/gone"
	t.Run("DELETE links/{hash} answers only success", func(t *testing.T) {
		wantLink(t, owner.get(t, path).fullLink(t), map[string]any{"clicks": json.Number("1")})
		owner.request(t, http.MethodDelete, path, "").wantKeys(t, http.StatusOK, "success")
	})
	t.Run("a deleted link is 404 everywhere, also for a second DELETE, and is not listed", func(t *testing.T) {
		owner.request(t, http.MethodDelete, path, "").wantKeys(t, http.StatusNotFound, "error", "message")
		owner.get(t, path).wantKeys(t, http.StatusNotFound, "error", "message")
		owner.patch(t, path, `{"title":"x"}`).wantKeys(t, http.StatusNotFound, "error", "message")
		owner.get(t, "/api/v1/stats/gone").wantKeys(t, http.StatusNotFound, "error", "message")
		if a := owner.get(t, "/api/v1/links"); len(a.body["data"].([]any)) != 0 {
			t.Error(a.raw)
		}
	})
	t.Run("its hash stays reserved: taken for others, and its owner's counts begin at 0", func(t *testing.T) {
		other.shorten(t, fields).wantInvalid(t, "custom_alias")
		owner.link(t, fields)
		wantLink(t, owner.get(t, path).fullLink(t), map[string]any{"clicks": json.Number("0")})
		stats := owner.get(t, "/api/v1/stats/gone").body["stats"].(map[string]any)
		wantLink(t, stats, map[string]any{"total_clicks": json.Number("0"), "clicks_by_day": []any{}})
	})
}

// TestEditRacesDelete lets a link be deleted between the look-up and the change.
func TestEditRacesDelete(t *testing.T) {
	var s *testService
	s = startFaulty(t, storetest.FaultOf(func(ctx context.Context) error {
		link, err := schema.FindLink(ctx, s.links, 0, "raced")
		return errors.Join(err, s.links.DeleteLink(ctx, link, time.Now()))
	}, "UpdateLink"))
	owner := s.caller(t, "a@example.org")
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "raced"})
	owner.patch(t, "/api/v1/links/raced", `{"title":"x"}`).wantKeys(t, http.StatusNotFound, "error", "message")
}

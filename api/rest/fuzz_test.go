package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// FuzzRequest checks that every path, query and body is answered as the OpenAPI document says, and never with 500.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, path, contentType, body string }{
		{"POST", "/api/v1/shorten", "application/json", `{"long_url": "https://example.com/", "custom_alias": "abc", ` +
			`"domain_id": 1}`},
		{"POST", "/api/v1/shorten", "application/json", `{"long_url": "https://b\u00fccher.example/\ud800"}`},
		{"POST", "/api/v1/shorten", "application/json; charset=utf-8", `{"LONG_URL": 1, "long_url": [], "domain_id": 1e99}`},
		{"POST", "/api/v1/shorten", "application/json", "{\"long_url\": \"https://example.com/\x00\xff\"}"},
		{"POST", "/api/v1/shorten", "application/json", strings.Repeat("[", 10_000)},
		{"POST", "/api/v1/shorten", "text/plain;;;", "null"},
		{"GET", "/api/v1/links?page=2", "", ""},
		{"GET", "/api/v1/links?page=99999999999999999999&page=%zz", "", ""},
		{"GET", "/api/v1/stats/abc?domain_id=0", "", ""},
		{"GET", "/api/v1/stats/%2e%2e%2f%00?domain_id=-", "", ""},
		{"GET", "/api/v1/links/abc?domain_id=1", "", ""},
		{"GET", "/api/v1/links?q=https://sho.rt/kept%2b+%00+%ff+xn--&tag=a&domain_id=0&is_active=true&sort=-clicks", "", ""},
		{"GET", "/api/v1/links?q=[::1]:80/%c3%9c&sort=created_at&is_active=", "", ""},
		{"GET", "/api/v1/links?limit=1000&after=bAAAAAAAAAAAAA&sort=created_at&page=1", "", ""},
		{"GET", "/api/v1/links?updated_since=0000-01-01T00:00:00+14:00&limit=0x1&after=%ff&sort=-clicks&deleted=1", "", ""},
		{"GET", "/api/v1/export?format=ndjson&q=%00&page=1", "", ""},
		{"GET", "/api/v1/tags", "", ""},
		{"POST", "/api/v1/links/bulk", "application/json", `{"links": [{"long_url": "http://a", "custom_alias": "abc"}, ` +
			`null, 1, {"tags": [null]}]}`},
		{"POST", "/api/v1/links/bulk", "application/json", `{"links": {"0": 1}}`},
		{"DELETE", "/api/v1/links/none", "", ""},
		{"PATCH", "/api/v1/links/kept", "application/json", `{"title": "a\u0000", "tags": ["a", null, 1], "expires_at": ` +
			`"2030-01-01"}`},
		{"PATCH", "/api/v1/links/kept", "application/json", `{"long_url": null, "expired_url": "", "is_active": null, ` +
			`"forward_query": 1}`},
		{"PATCH", "/api/v1/links/kept", "application/json", `{"expires_at": "9999-12-31T23:59:59-14:00", "expired_url": ` +
			`"http://a"}`},
		{"PATCH", "/api/v1/links/kept", "application/json", `{"tags": ["b", "a"], "title": "\ud83d", "is_active": false}`},
		{"POST", "/api/v1/shorten", "application/json", `{"long_url": "http://a", "tags": null, "expires_at": ` +
			`"2030-01-01T00:00:00.5Z"}`},
		{"GET", "/api/v1/openapi.json", "", ""},
		{"GET", "/api/v1/report?from=2026-11-01&to=2026-11-30&tz=Asia/Kathmandu&interval=hour&limit=1000&os=&country=DE", "",
			""},
		{"GET", "/api/v1/links/abc/report?from=1990-01-01&to=9999-99-99&tz=../UTC&device=%ff&limit=-1", "", ""},
		{"PUT", "/api/v2//../v1/links", "", ""},
	} {
		f.Add(seed.method, seed.path, seed.contentType, seed.body, "")
		f.Add(seed.method, seed.path, seed.contentType, seed.body, "key\xff")
	}
	s := start(f)
	owner := s.caller(f, "owner@example.org")
	keep := func(tb testing.TB) { // a link to edit, which a request may have deleted
		link := schema.Link{AccountID: owner.account.ID, Hash: "kept", URL: "https://example.com/", Active: true,
			CreatedAt: time.Now()}
		if err := s.links.CreateLink(tb.Context(), &link); err != nil {
			testkit.WantCode(tb, err, schema.CodeConflict)
		}
	}
	f.Fuzz(func(t *testing.T, method, path, contentType, body, key string) {
		if _, err := http.NewRequest(method, s.base+path, nil); err != nil || !strings.HasPrefix(path, "/") {
			return // it cannot be sent
		}
		keep(t)
		header := []string{"Content-Type", contentType}
		if key != "" {
			header = append(header, headerKey, key)
		}
		a, err := owner.try(t.Context(), method, path, body, header...)
		if a.status == http.StatusTooManyRequests {
			owner.addToken(t)
		}
		switch {
		case err != nil && (strings.Contains(err.Error(), "not as documented") || s.log.Contains("panic")):
			t.Errorf("%s %q with %q %q: %v\n%s", method, path, contentType, body, err, s.log.String())
		case a.status >= http.StatusInternalServerError:
			t.Errorf("%s %q with %q %q: answered %d %s\n%s", method, path, contentType, body, a.status, a.raw, s.log.String())
		}
	})
}

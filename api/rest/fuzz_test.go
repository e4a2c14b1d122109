package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzRequest checks that every path, query and body is answered as the OpenAPI document says, and never with 500.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, path, contentType, body string }{
		{"POST", "/api/v1/shorten", "application/json", `{"long_url": "https://example.com/", "custom_alias": "abc", "domain_id": 1}`},
		{"POST", "/api/v1/shorten", "application/json", `{"long_url": "https://b\u00fccher.example/\ud800"}`},
		{"POST", "/api/v1/shorten", "application/json; charset=utf-8", `{"LONG_URL": 1, "long_url": [], "domain_id": 1e99}`},
		{"POST", "/api/v1/shorten", "application/json", "{\"long_url\": \"https://example.com/\x00\xff\"}"},
		{"POST", "/api/v1/shorten", "application/json", strings.Repeat("[", 10_000)},
		{"POST", "/api/v1/shorten", "text/plain;;;", "null"},
		{"GET", "/api/v1/links?page=2", "", ""},
		{"GET", "/api/v1/links?page=99999999999999999999&page=%zz", "", ""},
		{"GET", "/api/v1/stats/abc?domain_id=0", "", ""},
		{"GET", "/api/v1/stats/%2e%2e%2f%00?domain_id=-", "", ""},
		{"GET", "/api/v1/openapi.json", "", ""},
		{"PUT", "/api/v2//../v1/links", "", ""},
	} {
		f.Add(seed.method, seed.path, seed.contentType, seed.body)
	}
	s := start(f)
	owner := s.caller(f, "owner@example.org")
	f.Fuzz(func(t *testing.T, method, path, contentType, body string) {
		if _, err := http.NewRequest(method, s.base+path, nil); err != nil || !strings.HasPrefix(path, "/") {
			return // it cannot be sent
		}
		a, err := owner.try(t.Context(), method, path, body, "Content-Type", contentType)
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

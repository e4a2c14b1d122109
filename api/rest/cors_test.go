package rest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"linkstream/api/apiservice"
	"linkstream/api/rest"
	"linkstream/schema/testkit"
)

func TestOrigins(t *testing.T) {
	const refused = "refused"
	for list, want := range map[string]string{
		"": "", "https://app.example.org": "https://app.example.org",
		"https://App.Example.org:443, http://localhost:3000": "https://app.example.org,http://localhost:3000",
		"http://bücher.example:80":                           "http://xn--bcher-kva.example",
		"http://[::1]:3000":                                  "http://[::1]:3000",
		"capacitor://localhost":                              "capacitor://localhost",
		"http://example.org/":                                refused,
		"*":                                                  refused,
		"null":                                               refused,
		"app.example.org":                                    refused,
		"https://*.example.org":                              refused,
		"https://a@example.org":                              refused,
		"https://example.org?":                               refused,
		"https://example.org#":                               refused,
		"https://":                                           refused,
		"https://example.org,*":                              refused,
	} {
		var o rest.Origins
		err := o.Set(list)
		if err != nil && want != refused || err == nil && o.String() != want {
			t.Errorf("%q is %q, %v; want %q", list, o.String(), err, want)
		}
	}
}

// corsHeaders are the headers of an answer that say something to browsers about other origins.
func corsHeaders(h http.Header) (found []string) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			found = append(found, strings.TrimPrefix(name, "Access-Control-"))
		}
	}
	slices.Sort(found)
	return found
}

const app = "https://app.example.org"

func TestCORS(t *testing.T) {
	var calls atomic.Int64
	s := startWrapped(t, func(context.Context, string) error { calls.Add(1); return nil }, asIs,
		func(cfg *apiservice.Config) { testkit.Must(t, cfg.CORSOrigins.Set(app+",http://localhost:3000")) })
	owner, nobody := s.caller(t, "cors@example.org"), caller{testService: s}
	hash := owner.link(t, map[string]any{"long_url": "https://example.com/"})
	origins := map[string]bool{app: true, "http://localhost:3000": true, "": false, "null": false,
		"https://app.example.org:8443": false, "http://app.example.org": false, "https://APP.example.org": false,
		"https://app.example.org.evil.example": false, "https://app.example.org/": false}
	paths := map[string]string{"/api/v1/links": "GET, HEAD, OPTIONS", "/api/v1/links/?page=2": "GET, HEAD, OPTIONS",
		"/api/v1/links/" + hash: "DELETE, GET, HEAD, OPTIONS, PATCH, PUT", "/api/v1/shorten": "OPTIONS, POST",
		"/api/v1/openapi.json": "GET, HEAD, OPTIONS", "/api/v1/nothing": "",
		"/dashboard": "", "/dashboard/sign-in": "", "/robots.txt": ""}

	t.Run("a preflight names what an origin may send, without a token, and costs nothing", func(t *testing.T) {
		before := calls.Load()
		for origin, allowed := range origins {
			for path, methods := range paths {
				for _, method := range []string{http.MethodGet, http.MethodPatch, "BREW"} {
					a := preflight(t, s, path, method, origin)
					if !allowed || strings.HasPrefix(path, "/dashboard") || path == "/robots.txt" {
						if got := corsHeaders(a.header); got != nil || a.status/100 == 2 {
							t.Errorf("%s of %q for %s: %d with %q", path, origin, method, a.status, got)
						}
						continue
					}
					if methods == "" {
						testkit.Equal(t, "status of an unknown path", a.status, http.StatusNotFound)
						continue
					}
					testkit.Equal(t, path+": status", a.status, http.StatusNoContent)
					testkit.Equal(t, path+": origin", a.header.Get("Access-Control-Allow-Origin"), origin)
					got := strings.Split(a.header.Get("Access-Control-Allow-Methods"), ", ")
					slices.Sort(got)
					testkit.Equal(t, path+": methods", strings.Join(got, ", "), methods)
					for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key", "If-Match",
						"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
						if !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), name) {
							t.Errorf("%s may not be sent", name)
						}
					}
					testkit.Equal(t, "headers", strings.Join(corsHeaders(a.header), " "), "Allow-Headers Allow-Methods "+
						"Allow-Origin Max-Age")
					wantVary(t, a, "Origin", "Access-Control-Request-Method")
					testkit.Equal(t, "limit", a.header.Get("X-RateLimit-Limit"), "")
				}
			}
		}
		testkit.Equal(t, "calls of the stores", calls.Load()-before, 0)
	})
	t.Run("an answer may be read by the pages of an origin, whatever it is", func(t *testing.T) {
		for origin, allowed := range origins {
			for _, c := range []struct {
				by           caller
				method, path string
				status       int
			}{
				{owner, http.MethodGet, "/api/v1/links", 200}, {owner, http.MethodHead, "/api/v1/live", 200},
				{owner, http.MethodGet, "/api/v1/links/unknown", 404}, {owner, http.MethodGet, "/api/v1/nothing", 404},
				{owner, http.MethodDelete, "/api/v1/links", 405}, {owner, http.MethodPost, "/api/v1/shorten", 422},
				{owner, http.MethodOptions, "/api/v1/links", 204}, {nobody, http.MethodGet, "/api/v1/links", 401},
				{nobody, http.MethodGet, "/api/v1/openapi.json", 200},
				{nobody, http.MethodGet, "/dashboard/sign-in", 200},
			} {
				a, err := s.send(t, c.by, c.method, c.path, "Origin", origin)
				testkit.Must(t, err)
				testkit.Equal(t, c.method+" "+c.path, a.status, c.status)
				want := "Allow-Origin Expose-Headers"
				if !allowed || strings.HasPrefix(c.path, "/dashboard") {
					want = ""
				}
				testkit.Equal(t, c.path+" of "+origin, strings.Join(corsHeaders(a.header), " "), want)
				if want != "" {
					testkit.Equal(t, "origin", a.header.Get("Access-Control-Allow-Origin"), origin)
					for _, name := range []string{"X-RateLimit-Remaining", "Retry-After", "ETag", "Idempotency-Replayed"} {
						if !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), name) {
							t.Errorf("%s may not be read", name)
						}
					}
				}
				if !strings.HasPrefix(c.path, "/dashboard") {
					wantVary(t, a, "Origin")
				}
			}
		}
	})
	t.Run("without origins nothing is said", func(t *testing.T) {
		s := start(t)
		if a := preflight(t, s, "/api/v1/links", http.MethodGet, app); a.status != 401 || corsHeaders(a.header) != nil {
			t.Errorf("%d %v", a.status, a.header)
		}
	})
}

func preflight(t *testing.T, s *testService, path, method, origin string) answer {
	t.Helper()
	a, err := s.send(t, caller{testService: s}, http.MethodOptions, path, "Origin", origin,
		"Access-Control-Request-Method", method, "Access-Control-Request-Headers", "authorization")
	testkit.Must(t, err)
	return a
}

// send sends a request like caller.try, without the headers that have no value.
func (s *testService) send(t *testing.T, c caller, method, path string, header ...string) (answer, error) {
	if header[1] == "" {
		header = header[2:]
	}
	return c.try(t.Context(), method, path, "", header...)
}

func wantVary(t *testing.T, a answer, names ...string) {
	t.Helper()
	vary := strings.Join(a.header.Values("Vary"), ", ")
	for _, name := range names {
		if !strings.Contains(", "+vary+",", ", "+name+",") {
			t.Errorf("Vary: %s", vary)
		}
	}
}

func TestTrailingSlash(t *testing.T) {
	s := start(t)
	owner, nobody := s.caller(t, "slash@example.org"), caller{testService: s}
	hash := owner.link(t, map[string]any{"long_url": "https://example.com/"})
	for _, c := range []struct{ method, path, query, body string }{
		{"GET", "/api/v1/links", "?page=1", ""}, {"HEAD", "/api/v1/links", "", ""}, {"GET", "/api/v1/links", "?page=x", ""},
		{"OPTIONS", "/api/v1/links", "", ""}, {"POST", "/api/v1/links", "", "{}"}, {"BREW", "/api/v1/links", "", ""},
		{"GET", "/api/v1/links/" + hash, "?domain_id=0", ""}, {"PATCH", "/api/v1/links/" + hash, "", `{"title":"x"}`},
		{"PUT", "/api/v1/links/" + hash, "", "{}"}, {"GET", "/api/v1/stats/" + hash, "", ""},
		{"GET", "/api/v1/stats/" + hash + "%2F", "", ""}, {"GET", "/api/v1/stats", "", ""}, {"GET", "/api/v1", "", ""},
		{"GET", "/api/v1/nothing", "?x=/", ""}, {"POST", "/api/v1/shorten", "", `{"long_url":"x"}`},
		{"POST", "/api/v1/links/bulk", "", `{"links":[{}]}`}, {"GET", "/api/v1/openapi.json", "", ""},
		{"GET", "/api/v1/links/" + hash + "/qr", "?format=png", ""},
	} {
		for _, by := range []caller{owner, nobody} {
			want := by.request(t, c.method, c.path+c.query, c.body)
			got := by.request(t, c.method, c.path+"/"+c.query, c.body)
			if got.status != want.status || len(got.raw) != len(want.raw) ||
				got.header.Get("Allow") != want.header.Get("Allow") {
				t.Errorf("%s %s/%s: %d %s\nwithout the slash: %d %s", c.method, c.path, c.query, got.status, got.raw,
					want.status, want.raw)
			}
		}
		for _, path := range []string{c.path + "//", strings.Replace(c.path, "/v1/", "/v1//", 1)} {
			if c.method == "GET" && path != c.path && path != "/api/v1//" {
				testkit.Equal(t, path, owner.request(t, c.method, path+c.query, c.body).status, http.StatusNotFound)
			}
		}
	}
	testkit.Equal(t, "a deletion", owner.request(t, "DELETE", "/api/v1/links/"+hash+"/", "").status, http.StatusOK)
}

package resttest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

func testAuthentication(t *testing.T, s System) {
	owner, nobody, known := s.account(t), s.nobody(), label()
	owner.Alias(t, known, "https://example.com/")
	last := owner.Token[len(owner.Token)-1:]
	invalid := map[string]string{
		"none":                       "",
		"no token":                   "Bearer",
		"an empty token":             "Bearer ",
		"no scheme":                  owner.Token,
		"another scheme":             "Basic " + owner.Token,
		"an unknown token":           "Bearer ls_" + strings.Repeat("A", 43),
		"a token cut short":          "Bearer " + strings.TrimSuffix(owner.Token, last),
		"a token one longer":         "Bearer " + owner.Token + last,
		"a token in another case":    "Bearer " + swapCase(owner.Token),
		"a token without its prefix": "Bearer " + strings.TrimPrefix(owner.Token, "ls_"),
		"two tokens":                 "Bearer " + owner.Token + ", Bearer " + owner.Token,
		"a very long token":          "Bearer ls_" + strings.Repeat("A", 2000),
	}
	for name, header := range invalid {
		t.Run("a missing or invalid token gives 401: "+name, func(t *testing.T) {
			for _, e := range endpoints(known) {
				a := nobody.Call(t, e.method, e.path, e.body, "Authorization", header).WantError(t, http.StatusUnauthorized)
				if a.Header.Get("WWW-Authenticate") != "Bearer" || a.Header.Get("X-RateLimit-Limit") != "" {
					t.Errorf("headers %v", a.Header)
				}
			}
		})
	}
	t.Run("a token in the query gives 401", func(t *testing.T) {
		nobody.Get(t, "/api/v1/links?token="+owner.Token).WantError(t, http.StatusUnauthorized)
	})
	t.Run("a valid token is admitted", func(t *testing.T) {
		for _, e := range endpoints(known) {
			owner.Call(t, e.method, e.path, e.body).Want(t, e.status)
		}
	})
	t.Run("an account can have several tokens", func(t *testing.T) {
		second := s.caller(s.Admin(t, "token", "add", owner.email))
		if items, _ := second.Page(t, ""); len(items) == 0 || second.Token == owner.Token {
			t.Errorf("the second token shows %v", items)
		}
	})
}

func swapCase(s string) string {
	if lower := strings.ToLower(s); lower != s {
		return lower
	}
	return strings.ToUpper(s)
}

var badRequests = []struct {
	name, method, path, body string
	header                   []string
	status                   int
}{
	{"an unknown path", "GET", "/api/v1/nothing", "", nil, 404},
	{"an unknown path outside the API", "GET", "/nothing", "", nil, 404},
	{"a path with two trailing slashes", "GET", "/api/v1/links//", "", nil, 404},
	{"a path with an empty segment", "GET", "/api/v1//links", "", nil, 404},
	{"a path in upper case", "GET", "/API/V1/LINKS", "", nil, 404},
	{"stats without a hash", "GET", "/api/v1/stats", "", nil, 404},
	{"stats of an empty hash", "GET", "/api/v1/stats/", "", nil, 404},
	{"a wrong method of shorten", "GET", "/api/v1/shorten", "", nil, 405},
	{"a wrong method of links", "POST", "/api/v1/links", goodBody, nil, 405},
	{"a wrong method of stats", "DELETE", "/api/v1/stats/known", "", nil, 405},
	{"an unknown method", "BREW", "/api/v1/links", "", nil, 405},
	{"a body that is not JSON", "POST", "/api/v1/shorten", "long_url=https://example.com/", nil, 400},
	{"incomplete JSON", "POST", "/api/v1/shorten", `{"long_url":"https://example.com/"`, nil, 400},
	{"a trailing comma", "POST", "/api/v1/shorten", `{"long_url":"https://example.com/",}`, nil, 400},
	{"JSON followed by more", "POST", "/api/v1/shorten", goodBody + goodBody, nil, 400},
	{"an array", "POST", "/api/v1/shorten", "[" + goodBody + "]", nil, 400},
	{"a string", "POST", "/api/v1/shorten", `"x"`, nil, 400},
	{"null", "POST", "/api/v1/shorten", `null`, nil, 400},
	{"deeply nested JSON", "POST", "/api/v1/shorten", strings.Repeat(`{"a":`, 12000), nil, 400},
	{"no content type", "POST", "/api/v1/shorten", goodBody, []string{"Content-Type", ""}, 415},
	{"a wrong content type", "POST", "/api/v1/shorten", goodBody, []string{"Content-Type", "text/plain"}, 415},
	{"a longer content type", "POST", "/api/v1/shorten", goodBody, []string{"Content-Type", "application/jsonx"}, 415},
	{"a malformed content type", "POST", "/api/v1/shorten", goodBody, []string{"Content-Type", "application/json; x"},
		415},
	{"a form", "POST", "/api/v1/shorten", goodBody, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
	{"a form of several parts", "POST", "/api/v1/shorten", goodBody,
		[]string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
	{"a body over 64 KiB", "POST", "/api/v1/shorten", paddedBody + " ", nil, 413},
	{"a body of 1 MiB", "POST", "/api/v1/shorten", strings.Repeat(paddedBody, 16), nil, 413},
}

func testErrors(t *testing.T, s System) {
	owner := s.account(t)
	for _, c := range badRequests {
		t.Run("errors are JSON with a message: "+c.name, func(t *testing.T) {
			a := owner.Call(t, c.method, c.path, c.body, c.header...).WantError(t, c.status)
			if a.Status == http.StatusMethodNotAllowed && a.Header.Get("Allow") == "" {
				t.Errorf("no Allow header, which RFC 9110 requires: %v", a)
			}
		})
	}
	t.Run("a body of 64 KiB is accepted", func(t *testing.T) {
		owner.Call(t, "POST", "/api/v1/shorten", paddedBody).Want(t, http.StatusCreated)
	})
	for _, contentType := range []string{"application/json; charset=utf-8", "Application/JSON",
		"application/json;charset=x"} {
		t.Run("a content type may have parameters and capitals: "+contentType, func(t *testing.T) {
			owner.Call(t, "POST", "/api/v1/shorten", goodBody, "Content-Type", contentType).Want(t, http.StatusCreated)
		})
	}
}

func testSuspension(t *testing.T, s System) {
	owner, known := s.account(t), label()
	owner.Alias(t, known, "https://example.com/")
	reads := func(status int) func() error {
		return func() error { return owner.Get(t, "/api/v1/links").IsStatus(status) }
	}
	follows := func(t *testing.T, command, reverse string, during, after int) {
		testkit.Follows(t, 2*time.Second, func(try int) func() error {
			if try > 0 {
				s.Admin(t, "account", reverse, owner.email)
				testkit.Succeeds(t, reads(during))
			}
			s.Admin(t, "account", command, owner.email)
			return reads(after)
		})
	}
	follows(t, "suspend", "reinstate", http.StatusOK, http.StatusForbidden)

	for _, e := range endpoints(known) {
		t.Run("403 with a message: "+e.String(), func(t *testing.T) {
			a := owner.Call(t, e.method, e.path, e.body).WantError(t, http.StatusForbidden)
			testkit.Equal(t, "error", a.Body["error"], any("forbidden"))
			remaining(t, a)
		})
	}
	t.Run("a new token of the account gives 403, too", func(t *testing.T) {
		s.caller(s.Admin(t, "token", "add", owner.email)).Get(t, "/api/v1/links").WantError(t, http.StatusForbidden)
	})
	t.Run("other accounts are served", func(t *testing.T) { s.account(t).Page(t, "") })
	t.Run("a reinstated account is served again", func(t *testing.T) {
		follows(t, "reinstate", "suspend", http.StatusForbidden, http.StatusOK)
	})
}

func testVersions(t *testing.T, s System) {
	owner, known := s.account(t), label()
	owner.Alias(t, known, "https://example.com/")
	for _, e := range endpoints(known)[:3] {
		for _, version := range []string{"", "/api", "/api/v2", "/api/v10", "/API/v1", "//api/v1"} {
			path := version + strings.TrimPrefix(e.path, "/api/v1")
			t.Run("the version is part of every path: "+e.method+" "+path, func(t *testing.T) {
				owner.Call(t, e.method, path, e.body).WantError(t, http.StatusNotFound)
				s.nobody().Call(t, e.method, path, e.body).WantError(t, http.StatusNotFound)
			})
		}
	}
	t.Run("an OpenAPI document describes version 1", func(t *testing.T) {
		doc := owner.Get(t, "/api/v1/openapi.json").Want(t, http.StatusOK).Body
		if v, _ := doc["openapi"].(string); !strings.HasPrefix(v, "3.1") {
			t.Errorf("openapi is %v, want 3.1", doc["openapi"])
		}
		paths := fmt.Sprint(doc["paths"])
		for _, path := range []string{"/shorten", "/stats/{hash}", "/links"} {
			if !strings.Contains(paths, path) {
				t.Errorf("the document has no path %s", path)
			}
		}
	})
}

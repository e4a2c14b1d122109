package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

func TestSection5Authentication(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSection5Authentication)
}

func testSection5Authentication(t *testing.T, s *system) {
	owner, nobody := s.owner(), caller{api: s.api}
	owner.alias(t, "known", "https://example.com/")

	t.Run("every request carries a bearer token in the Authorization header", func(t *testing.T) {
		for _, e := range endpoints {
			a := nobody.call(t, e.method, e.path, e.body, "Authorization", "Bearer "+s.token)
			if a.wantJSON(t); a.status >= 400 {
				t.Error(a)
			}
		}
	})
	last := s.token[len(s.token)-1:]
	invalid := map[string]string{
		"an empty header":            "",
		"no token":                   "Bearer",
		"an empty token":             "Bearer ",
		"no scheme":                  s.token,
		"another scheme":             "Basic " + s.token,
		"an unknown token":           "Bearer ls_" + strings.Repeat("A", 43),
		"a token cut short":          "Bearer " + strings.TrimSuffix(s.token, last),
		"a token one longer":         "Bearer " + s.token + last,
		"a token in small letters":   "Bearer " + strings.ToLower(s.token),
		"a token without its prefix": "Bearer " + strings.TrimPrefix(s.token, "ls_"),
		"two tokens":                 "Bearer " + s.token + ", Bearer " + s.token,
		"a very long token":          "Bearer ls_" + strings.Repeat("A", 2000),
	}
	for name, header := range invalid {
		t.Run("an invalid token gives 401: "+name, func(t *testing.T) {
			for _, e := range endpoints {
				nobody.call(t, e.method, e.path, e.body, "Authorization", header).wantError(t, http.StatusUnauthorized)
			}
		})
	}
	for _, e := range endpoints {
		t.Run("a missing token gives 401: "+e.method+" "+e.path, func(t *testing.T) {
			nobody.call(t, e.method, e.path, e.body).wantError(t, http.StatusUnauthorized)
			nobody.call(t, e.method, e.path+"?token="+s.token, e.body).wantError(t, http.StatusUnauthorized)
		})
	}
	t.Run("an invalid request without a token gives 401, too", func(t *testing.T) {
		nobody.call(t, http.MethodPost, "/api/v1/shorten", `{`).wantError(t, http.StatusUnauthorized)
		nobody.get(t, "/api/v1/links?page=x").wantError(t, http.StatusUnauthorized)
	})
	t.Run("an account can have several tokens", func(t *testing.T) {
		second := caller{s.api, s.admin(t, "token", "add", s.email)}
		if items, _ := second.page(t, ""); len(items) == 0 || second.token == s.token {
			t.Errorf("the second token shows %v", items)
		}
	})
	t.Run("Content-Type may have a charset", func(t *testing.T) {
		owner.call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/"}`,
			"Content-Type", "application/json; charset=utf-8").want(t, http.StatusCreated)
	})
}

// goodBody is a valid request to shorten, and paddedBody is one of 64 KiB.
const goodBody = `{"long_url":"https://example.com/"}`

var paddedBody = goodBody + strings.Repeat(" ", 64<<10-len(goodBody))

var badRequests = []struct {
	name, method, path, body string
	header                   []string
	status                   int // 0: any 4xx
}{
	{"an unknown path", "GET", "/api/v1/nothing", "", nil, 404},
	{"an unknown path outside the API", "GET", "/nothing", "", nil, 404},
	{"a path with a trailing slash", "GET", "/api/v1/links/", "", nil, 404},
	{"a path with an empty segment", "GET", "/api/v1//links", "", nil, 404},
	{"a path in upper case", "GET", "/API/V1/LINKS", "", nil, 404},
	{"stats without a hash", "GET", "/api/v1/stats", "", nil, 404},
	{"stats of an empty hash", "GET", "/api/v1/stats/", "", nil, 404},
	{"a wrong method of shorten", "GET", "/api/v1/shorten", "", nil, 405},
	{"a wrong method of links", "POST", "/api/v1/links", goodBody, nil, 405},
	{"a wrong method of stats", "DELETE", "/api/v1/stats/known", "", nil, 405},
	{"an empty body", "POST", "/api/v1/shorten", "", nil, 0},
	{"a body that is not JSON", "POST", "/api/v1/shorten", "long_url=https://example.com/", nil, 0},
	{"incomplete JSON", "POST", "/api/v1/shorten", `{"long_url":"https://example.com/"`, nil, 0},
	{"JSON followed by more", "POST", "/api/v1/shorten", goodBody + goodBody, nil, 0},
	{"JSON that is not an object", "POST", "/api/v1/shorten", `["https://example.com/"]`, nil, 0},
	{"JSON that is null", "POST", "/api/v1/shorten", `null`, nil, 0},
	{"deeply nested JSON", "POST", "/api/v1/shorten", strings.Repeat(`{"a":`, 10000), nil, 0},
	{"text that is not UTF-8", "POST", "/api/v1/shorten", "{\"long_url\":\"https://example.com/\xff\xfe\"}", nil, 0},
	{"a wrong content type", "POST", "/api/v1/shorten", goodBody, []string{"Content-Type", "text/plain"}, 0},
	{"a form", "POST", "/api/v1/shorten", goodBody, []string{"Content-Type", "application/x-www-form-urlencoded"}, 0},
	{"a body over 64 KiB", "POST", "/api/v1/shorten", paddedBody + " ", nil, 413},
	{"a body of 1 MiB", "POST", "/api/v1/shorten", strings.Repeat(paddedBody, 16), nil, 413},
}

func TestSection7Errors(t *testing.T) { t.Parallel(); onBothKinds(t, testSection7Errors) }

func testSection7Errors(t *testing.T, s *system) {
	owner := s.owner()
	for _, c := range badRequests {
		t.Run("errors are JSON with a message: "+c.name, func(t *testing.T) {
			a := owner.call(t, c.method, c.path, c.body, c.header...)
			a.wantJSON(t)
			if err := text(a.body["message"]); err != nil {
				t.Errorf("message: %v: %v", err, a)
			}
			if c.status == 0 && (a.status < 400 || a.status > 499) || c.status != 0 && a.status != c.status {
				t.Errorf("want status %d: %v", c.status, a)
			}
			if a.status == http.StatusMethodNotAllowed && a.header.Get("Allow") == "" {
				t.Errorf("no Allow header, which RFC 9110 requires: %v", a)
			}
		})
	}
	t.Run("a body of 64 KiB is accepted", func(t *testing.T) {
		owner.call(t, "POST", "/api/v1/shorten", paddedBody).want(t, http.StatusCreated)
	})
	t.Run("404 has error = not_found", func(t *testing.T) {
		owner.get(t, "/api/v1/stats/nothing").wantError(t, http.StatusNotFound)
	})
}

func TestSection7ErrorsOfMalformedRequests(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	for name, raw := range map[string]string{
		"not HTTP":          "HELLO\r\n\r\n",
		"a path of 1 MiB":   "GET /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"a header of 1 MiB": "GET /api/v1/links HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"an invalid length": "POST /api/v1/shorten HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n{}",
	} {
		t.Run("are JSON, unless the connection is closed: "+name, func(t *testing.T) {
			a, ok := rawCall(t, s.api, raw)
			if ok && (a.status < 400 || a.status > 499 || text(a.body["message"]) != nil) {
				t.Errorf("want 4xx with a message: %v", a)
			}
		})
	}
}

// rawCall sends raw as it is. ok is false if the connection is closed without an answer.
func rawCall(t *testing.T, base, raw string) (a answer, ok bool) {
	t.Helper()
	conn := dial(t, base)
	io.WriteString(conn, raw) // fails if the server closes the connection before it has read everything
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return answer{}, false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, false
	}
	a = answer{request: fmt.Sprintf("%.40q", raw), status: res.StatusCode, header: res.Header, raw: string(body)}
	a.body, _ = decode(a.raw).(object)
	return a, true
}

func TestSection7SuspendedAccountIsForbidden(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSection7SuspendedAccountIsForbidden)
}

func testSection7SuspendedAccountIsForbidden(t *testing.T, s *system) {
	other, email := s.another(t, "other")
	other.alias(t, "known", "https://example.com/")
	reads := func(status int) func() error {
		return func() error { return other.get(t, "/api/v1/links").isStatus(status) }
	}
	testkit.Follows(t, 2*time.Second, func(try int) func() error {
		if try > 0 {
			s.admin(t, "account", "reinstate", email)
			testkit.Succeeds(t, reads(http.StatusOK))
		}
		s.admin(t, "account", "suspend", email)
		return reads(http.StatusForbidden)
	})

	for _, e := range endpoints {
		t.Run("403 with a message: "+e.method+" "+e.path, func(t *testing.T) {
			other.call(t, e.method, e.path, e.body).wantError(t, http.StatusForbidden)
		})
	}
	t.Run("a new token of the account gives 403, too", func(t *testing.T) {
		caller{s.api, s.admin(t, "token", "add", email)}.get(t, "/api/v1/links").wantError(t, http.StatusForbidden)
	})
	t.Run("its links are gone", func(t *testing.T) { wantPage(t, s.visit(t, http.MethodGet, "/known"), http.StatusGone) })
	t.Run("other accounts are served", func(t *testing.T) { s.owner().page(t, "") })
	t.Run("a reinstated account is served again", func(t *testing.T) {
		testkit.Follows(t, 2*time.Second, func(try int) func() error {
			if try > 0 {
				s.admin(t, "account", "suspend", email)
				testkit.Succeeds(t, reads(http.StatusForbidden))
			}
			s.admin(t, "account", "reinstate", email)
			return reads(http.StatusOK)
		})
	})
}

package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestMethodsAndPaths(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	t.Run("an unsupported method gives 405 with Allow", func(t *testing.T) {
		for path, allow := range map[string]string{"/api/v1/shorten": "OPTIONS, POST", "/api/v1/links": "GET, HEAD, OPTIONS",
			"/api/v1/stats/x": "GET, HEAD, OPTIONS", "/api/v1/links/x": "DELETE, GET, HEAD, OPTIONS, PATCH, PUT",
			"/api/v1/openapi.json": "GET, HEAD, OPTIONS"} {
			for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, "BREW"} {
				if strings.Contains(allow, method) {
					continue
				}
				a := owner.request(t, method, path, "")
				a.wantKeys(t, http.StatusMethodNotAllowed, "message")
				if got := a.header.Get("Allow"); got != allow {
					t.Errorf("%s %s: Allow %q, want %q", method, path, got, allow)
				}
			}
			a := owner.request(t, http.MethodOptions, path, "")
			if a.status != http.StatusNoContent || a.header.Get("Allow") != allow || a.raw != "" {
				t.Errorf("OPTIONS %s: %d %v %q", path, a.status, a.header, a.raw)
			}
		}
	})
	t.Run("HEAD is answered like GET but without a body", func(t *testing.T) {
		for path, status := range map[string]int{"/api/v1/links": 200, "/api/v1/stats/none": 404,
			"/api/v1/openapi.json": 200} {
			a, get := owner.request(t, http.MethodHead, path, ""), owner.get(t, path)
			if a.status != status || get.status != status || a.raw != "" ||
				a.header.Get("Content-Length") != fmt.Sprint(len(get.raw)) || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %v %q", path, a.status, a.header, a.raw)
			}
		}
	})
}

func TestTooLargeBodies(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	for name, size := range map[string]int{"by one byte": 64<<10 + 1, "by far": 1 << 20} {
		for form, body := range map[string]func(io.Reader) io.Reader{
			"with a length": func(r io.Reader) io.Reader { return r },
			"in chunks":     func(r io.Reader) io.Reader { return io.MultiReader(r) }, // without a Content-Length
		} {
			t.Run("give 413 with message and headers: "+name+", "+form, func(t *testing.T) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/api/v1/shorten",
					body(strings.NewReader(strings.Repeat("x", size))))
				testkit.Must(t, err)
				req.Header.Set("Authorization", "Bearer "+owner.token)
				res, err := s.client.Do(req)
				testkit.Must(t, err)
				defer res.Body.Close()
				raw, err := io.ReadAll(res.Body)
				testkit.Must(t, err)
				if res.StatusCode != http.StatusRequestEntityTooLarge || !bytes.Contains(raw, []byte(`{"message":`)) {
					t.Errorf("%d %s", res.StatusCode, raw)
				}
				remaining(t, answer{header: res.Header})
			})
		}
	}
}

// exchange sends raw bytes on a new connection and returns all answers until the server closes it.
func (s *testService) exchange(t *testing.T, raw string) (answers []*http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.(*net.TCPConn).SetWriteBuffer(4<<10)) // a large body is not sent before it is read
	testkit.Must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(conn, raw)
	testkit.Must(t, err)
	for reader := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			return answers
		}
		body, err := io.ReadAll(res.Body)
		testkit.Must(t, err)
		res.Body = io.NopCloser(bytes.NewReader(body))
		answers = append(answers, res)
	}
}

func TestUnusualHTTP(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	authorized := "Host: x\r\nAuthorization: Bearer " + owner.token + "\r\n"
	for _, c := range []struct {
		name, raw string
		statuses  []int
	}{
		{"not HTTP", "HELLO\r\n\r\n", []int{400}},
		{"a Content-Length that is not a number",
			"POST /api/v1/shorten HTTP/1.1\r\n" + authorized + "Content-Length: x\r\n\r\n{}", []int{400}},
		{"a chunk without a size", "POST /api/v1/shorten HTTP/1.1\r\n" + authorized +
			"Transfer-Encoding: chunked\r\n\r\nzz\r\n", []int{400}},
		{"a header of 16 KiB", "GET /api/v1/links HTTP/1.1\r\n" + authorized + "X: " + strings.Repeat("x", 16<<10) +
			"\r\n\r\n",
			[]int{431}},
		{"a header that is still being sent when it is refused", "GET /api/v1/links HTTP/1.1\r\n" + authorized + "X: " +
			strings.Repeat("x", 900_000) + "\r\n\r\n", []int{431}},
		{"a malformed escape in the path", "GET /api/v1/stats/a%zz HTTP/1.1\r\n" + authorized + "Connection: close\r\n\r\n",
			[]int{404}},
		{"a malformed request target", "GET http://[x/api/v1/links HTTP/1.1\r\n" + authorized + "\r\n", []int{400}},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []int{404}},
		{"an escape in the fixed part of a path",
			"GET /api/%761/links HTTP/1.1\r\n" + authorized + "Connection: close\r\n\r\n", []int{404}},
		{"CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []int{404}},
		{"a request target with a host",
			"GET http://x/api/v1/links HTTP/1.1\r\n" + authorized + "Connection: close\r\n\r\n", []int{200}},
		{"a body that no handler reads", "GET /api/v1/links HTTP/1.1\r\n" + authorized + "Content-Length: 5\r\n\r\nGET /" +
			"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /" +
			"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []int{200, 200}}, // the second body is not read
		{"a request after a body that is too large", "POST /api/v1/shorten HTTP/1.1\r\n" + authorized +
			"Content-Length: 70000\r\n\r\n" + strings.Repeat("x", 70000) + "GET /none HTTP/1.1\r\nHost: x\r\n\r\n", []int{413}},
		{"a body that is still being sent when it is refused", "POST /api/v1/shorten HTTP/1.1\r\n" + authorized +
			"Content-Length: 1048576\r\n\r\n" + strings.Repeat("x", 1<<20), []int{413}},
		{"a body after Expect: 100-continue", "POST /api/v1/shorten HTTP/1.1\r\n" + authorized + "Connection: close\r\n" +
			"Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", []int{100, 422}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var statuses []int
			for _, res := range s.exchange(t, c.raw) {
				statuses = append(statuses, res.StatusCode)
				body, err := io.ReadAll(res.Body)
				testkit.Must(t, err)
				if res.StatusCode >= 400 && !bytes.Contains(body, []byte(`"message":"`)) {
					t.Errorf("%d %s", res.StatusCode, body)
				}
			}
			testkit.Equal(t, "statuses", statuses, c.statuses)
		})
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name, path string
		err        error
		status     int
		retryAfter string
	}{
		{"7: an error of a store gives 500", "/api/v1/links", errors.New("secret cause"), http.StatusInternalServerError, ""},
		{"7: a panic gives 500", "/api/v1/stats/known", nil, http.StatusInternalServerError, ""},
		{"an unavailable store gives 503", "/api/v1/links",
			schema.Errorf(schema.CodeUnavailable, "secret cause"), http.StatusServiceUnavailable, "5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startFaulty(t, storetest.FaultOf(func(context.Context) error {
				if c.err == nil {
					panic("secret cause")
				}
				return c.err
			}, "Links", "OwnedLinks"))
			owner := s.caller(t, "a@example.org")
			a := owner.get(t, c.path)
			a.wantKeys(t, c.status, "message")
			remaining(t, a)
			if strings.Contains(a.raw, "secret") || !strings.Contains(s.log.String(), "secret cause") {
				t.Errorf("answer %s, log %s", a.raw, s.log)
			}
			if got := a.header.Get("Retry-After"); got != c.retryAfter {
				t.Errorf("Retry-After %q", got)
			}
			owner.get(t, "/api/v1/none").want(t, http.StatusNotFound)
		})
	}
}

// TestStoreErrorsStayInside requires that no answer has the text of an error without a message for clients, for any
// code.
func TestStoreErrorsStayInside(t *testing.T) {
	var failing atomic.Pointer[schema.Error]
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error { return failing.Load() }, "Links"))
	owner := s.caller(t, "a@example.org")
	for _, code := range []schema.Code{schema.CodeInvalid, schema.CodeUnauthorized, schema.CodeForbidden,
		schema.CodeNotFound, schema.CodeConflict, schema.CodeUnsafeURL, schema.CodeUnavailable, schema.CodeInternal} {
		failing.Store(schema.Errorf(code, "secret cause"))
		a := owner.get(t, "/api/v1/links")
		if a.status < 500 || strings.Contains(a.raw+fmt.Sprint(a.header), "secret") {
			t.Errorf("%s: %d %s", code, a.status, a.raw)
		}
	}
	if n := strings.Count(s.log.String(), "secret cause"); n != 8 {
		t.Errorf("the log has %d causes", n)
	}
}

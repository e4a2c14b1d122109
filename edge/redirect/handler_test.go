package redirect_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"linkstream/edge/redirect"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestAnswers(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		e.link(t, 0, "abc", "https://example.com/a?b=c#d")
		e.link(t, 0, "b_-9", "https://bücher.example/ß?q=ü%20x#é")
		e.link(t, e.domain(t, "go.example.com", true), "own", "https://own.example/")
		e.link(t, 0, "abcdefg", "https://example.com/automatic")
		e.link(t, 0, "off", "https://example.com/")
		storetest.SetActive(t, e.store, 0, "off", false)
		addr := e.serve(t, loops)

		for _, c := range []struct {
			name, method, url string
			status            int
			location          string
		}{
			{"a link", "GET", "http://sho.rt/abc", 302, "https://example.com/a?b=c#d"},
			{"HEAD of a link", "HEAD", "http://sho.rt/abc", 302, "https://example.com/a?b=c#d"},
			{"a link that is not ASCII", "GET", "http://sho.rt/b_-9", 302,
				"https://xn--bcher-kva.example/%C3%9F?q=%C3%BC%20x#%C3%A9"},
			{"a query is ignored", "GET", "http://sho.rt/abc?u=https://x.example/y", 302, "https://example.com/a?b=c#d"},
			{"an escaped hash", "GET", "http://sho.rt/%61bc", 302, "https://example.com/a?b=c#d"},
			{"a host in capitals with a port", "GET", "http://SHO.RT.:8080/abc", 302, "https://example.com/a?b=c#d"},
			{"a custom domain", "GET", "http://go.example.com/own", 302, "https://own.example/"},
			{"a link of another domain", "GET", "http://sho.rt/own", 404, ""},
			{"an unknown host", "GET", "http://other.example.com/abc", 404, ""},
			{"an unknown hash", "GET", "http://sho.rt/nothing", 404, ""},
			{"HEAD of an unknown hash", "HEAD", "http://sho.rt/nothing", 404, ""},
			{"an alias in capitals", "GET", "http://sho.rt/aBC", 302, "https://example.com/a?b=c#d"},
			{"capitals of a hash that may be automatic", "GET", "http://sho.rt/ABCDEFG", 404, ""},
			{"an invalid hash", "GET", "http://sho.rt/wp-login.php", 404, ""},
			{"a slash after the hash", "GET", "http://sho.rt/abc/", 302, "https://example.com/a?b=c#d"},
			{"a second segment", "GET", "http://sho.rt/abc/def", 404, ""},
			{"an escaped slash", "GET", "http://sho.rt/abc%2Fdef", 404, ""},
			{"an inactive link", "GET", "http://sho.rt/off", 410, ""},
			{"POST", "POST", "http://sho.rt/abc", 405, ""},
			{"DELETE", "DELETE", "http://sho.rt/", 405, ""},
			{"OPTIONS of /metrics", "OPTIONS", "http://sho.rt/metrics", 405, ""},
			{"the root", "GET", "http://sho.rt/", 200, ""},
			{"robots.txt", "GET", "http://sho.rt/robots.txt", 200, ""},
			{"favicon.ico", "GET", "http://sho.rt/favicon.ico", 204, ""},
			{"healthz", "GET", "http://sho.rt/healthz", 404, ""},
			{"readyz", "GET", "http://sho.rt/readyz", 404, ""},
			{"metrics", "GET", "http://sho.rt/metrics", 404, ""},
			{"metrics of any host", "GET", "http://127.0.0.1/metrics", 404, ""},
			{"metrics after two slashes", "GET", "http://sho.rt//metrics", 404, ""},
			{"metrics, escaped", "GET", "http://sho.rt/%6detrics", 404, ""},
			{"metrics, by way of another path", "GET", "http://sho.rt/x/../metrics", 404, ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				resp, body := send(t, addr, c.method, c.url)
				if resp.StatusCode != c.status || resp.Header.Get("Location") != c.location {
					t.Errorf("%d to %q, want %d to %q", resp.StatusCode, resp.Header.Get("Location"), c.status, c.location)
				}
				if server := resp.Header.Values("Server"); server != nil {
					t.Errorf("header Server: %q", server)
				}
				if c.status == 302 && (resp.Header.Get("Cache-Control") != "private, no-store" || body != "") {
					t.Errorf("redirect with header %v and body %q", resp.Header, body)
				}
				if c.status >= 400 {
					checkPage(t, c.method, resp, body)
				}
			})
		}
	})
}

// checkPage checks an error page.
func checkPage(t *testing.T, method string, resp *http.Response, body string) {
	t.Helper()
	for name, want := range map[string]string{
		"Cache-Control":          "no-store",
		"Content-Type":           "text/html; charset=utf-8",
		"X-Content-Type-Options": "nosniff",
		"X-Robots-Tag":           "noindex",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if method == "HEAD" {
		if body != "" || resp.ContentLength <= 0 {
			t.Errorf("body %q and Content-Length %d", body, resp.ContentLength)
		}
		return
	}
	_, style, _ := strings.Cut(body, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	digest := sha256.Sum256([]byte(style))
	csp := resp.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none';") ||
		!strings.Contains(csp, base64.StdEncoding.EncodeToString(digest[:])) {
		t.Errorf("the policy %q does not allow exactly the page's style", csp)
	}
	for _, bad := range []string{"<script", "://", "url("} {
		if strings.Contains(body, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if !strings.Contains(body, "<h1>") || !strings.Contains(body, "prefers-color-scheme: dark") {
		t.Errorf("the page has no heading or no dark colours:\n%s", body)
	}
}

func TestStoppedLinksSayWhy(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		addr := e.serve(t, loops)
		for _, hash := range []string{"down", "off"} {
			e.link(t, 0, hash, "https://example.com/")
		}
		e.link(t, 0, "unsafe", "https://www.unsafe.example/")
		testkit.Must(t, e.store.SetTakenDown(t.Context(), 0, "down", true))
		storetest.SetActive(t, e.store, 0, "off", false)
		for range 2 { // from the store, then from memory
			for hash, why := range map[string]string{"down": "operator", "off": "switched it off",
				"unsafe": "known to be unsafe"} {
				resp, body := send(t, addr, "GET", "http://sho.rt/"+hash)
				if resp.StatusCode != 410 || resp.Header.Get("Location") != "" || !strings.Contains(body, why) {
					t.Errorf("%s: %d to %q, want 410 and %q:\n%s", hash, resp.StatusCode, resp.Header.Get("Location"), why, body)
				}
				checkPage(t, "GET", resp, body)
			}
		}
		if n := len(e.clicks(t)); n != 0 {
			t.Errorf("%d clicks were recorded", n)
		}
	})
}

func TestAnswerHeaders(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) { e.cfg.Challenge = func(*fasthttp.RequestCtx) bool { panic("a bug") } })
		addr := e.serve(t, loops)
		t.Run("405 has Allow", func(t *testing.T) {
			resp, _ := send(t, addr, "PUT", "http://sho.rt/abc")
			if got := resp.Header.Get("Allow"); got != "GET, HEAD" {
				t.Errorf("Allow: %q", got)
			}
		})
		t.Run("503 has Retry-After and hides the cause", func(t *testing.T) {
			e.store.inject(func() error { return errors.New("connection refused") })
			defer e.store.inject(nil)
			resp, body := send(t, addr, "GET", "http://sho.rt/abc")
			if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
				t.Errorf("%d with Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
			}
			checkPage(t, "GET", resp, body)
			if strings.Contains(body, "connection refused") {
				t.Error("the page shows the cause")
			}
		})
		t.Run("a panic fails only its request", func(t *testing.T) {
			resp, body := send(t, addr, "GET", "http://sho.rt/.well-known/acme-challenge/panic")
			if resp.StatusCode != 500 || strings.Contains(body, "a bug") {
				t.Errorf("%d: %s", resp.StatusCode, body)
			}
			checkPage(t, "GET", resp, body)
			if log := e.log.String(); !strings.Contains(log, "panic: a bug") || !strings.Contains(log, "answer.go") {
				t.Errorf("logged %s", log)
			}
		})
		t.Run("a panic in a look-up is a look-up that fails", func(t *testing.T) {
			e.link(t, 0, "abc", "https://example.com/")
			e.store.inject(func() error { panic("a bug") })
			for _, host := range []string{"sho.rt", "go.example.com"} {
				if resp, _ := send(t, addr, "GET", "http://"+host+"/abc"); resp.StatusCode != 503 {
					t.Errorf("%s: %d", host, resp.StatusCode)
				}
			}
			e.store.inject(nil)
			for host, want := range map[string]int{"sho.rt": 302, "go.example.com": 404} {
				if resp, _ := send(t, addr, "GET", "http://"+host+"/abc"); resp.StatusCode != want {
					t.Errorf("the next request for %s: %d", host, resp.StatusCode)
				}
			}
		})
	})
}

func TestRobots(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	testkit.Must(t, os.WriteFile(file, []byte("User-agent: GPTBot\nDisallow: /\n"), 0o600))
	for set, want := range map[string]string{
		"": "User-agent: *\nAllow: /\n", "allow": "User-agent: *\nAllow: /\n",
		"deny": "User-agent: *\nAllow: /$\nDisallow: /\n",
		file:   "User-agent: GPTBot\nDisallow: /\n",
	} {
		t.Run(filepath.Base(set), func(t *testing.T) {
			e := newEdge(t, func(e *edge) {
				if set != "" {
					testkit.Must(t, e.cfg.Robots.Set(set))
				}
			})
			addr := e.serve(t, 1)
			for _, host := range []string{"sho.rt", "go.example.com"} {
				if resp, body := send(t, addr, "GET", "http://"+host+"/robots.txt"); body != want || resp.StatusCode != 200 {
					t.Errorf("%s: %d\n%s", host, resp.StatusCode, body)
				}
			}
		})
	}
	if new(redirect.Robots).Set(file+"2") == nil {
		t.Error("a file that is not there is accepted")
	}
}

func TestPublicHealth(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) { e.cfg.PublicHealth = true })
		addr := e.serve(t, loops)
		if resp, body := send(t, addr, "GET", "http://sho.rt/healthz"); resp.StatusCode != 200 || body != "ok\n" {
			t.Errorf("/healthz: %d %q", resp.StatusCode, body)
		}
		for _, path := range []string{"/readyz", "/metrics"} {
			if resp, _ := send(t, addr, "GET", "http://sho.rt"+path); resp.StatusCode != 404 {
				t.Errorf("%s: %d", path, resp.StatusCode)
			}
		}
	})
}

// timed returns the number of requests whose times are in the histogram.
func (e *edge) timed(t *testing.T) (n int) {
	t.Helper()
	var page strings.Builder
	e.metrics.WritePrometheus(&page)
	_, rest, _ := strings.Cut(page.String(), "\nlinkstream_edge_answer_seconds_count ")
	_, err := fmt.Sscan(rest, &n)
	testkit.Must(t, err)
	return n
}

func TestAnswerTimes(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		const requests = 64 * 50
		e := newEdge(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		conn, err := net.Dial("tcp", e.serve(t, loops))
		testkit.Must(t, err)
		defer conn.Close()
		answers := bufio.NewReader(conn)
		for range requests {
			_, err := io.WriteString(conn, "GET /abc HTTP/1.1\r\nHost: sho.rt\r\n\r\n")
			testkit.Must(t, err)
			resp, err := http.ReadResponse(answers, nil)
			testkit.Must(t, err)
			resp.Body.Close()
		}
		// About 50: the deviation is 7.
		if got := e.timed(t); got < 15 || got > 150 {
			t.Errorf("%d of %d requests are timed, want about one in 64", got, requests)
		}
	})
}

func TestAnswerMetrics(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		addr := e.serve(t, loops)
		for range 3 {
			send(t, addr, "GET", "http://sho.rt/abc")
		}
		send(t, addr, "HEAD", "http://sho.rt/abc")
		send(t, addr, "GET", "http://sho.rt/abc", "Purpose", "prefetch")
		send(t, addr, "GET", "http://sho.rt/other")
		var page strings.Builder
		e.metrics.WritePrometheus(&page)
		text := page.String()
		for _, line := range []string{
			`linkstream_edge_answers_total{status="302"} 5`,
			`linkstream_edge_answers_total{status="404"} 1`,
			`linkstream_edge_uncounted_total{reason="head"} 1`,
			`linkstream_edge_uncounted_total{reason="prefetch"} 1`,
			`linkstream_edge_cache_hits_total{cache="links"} 4`,
			`linkstream_edge_cache_misses_total{cache="links"} 2`,
			`linkstream_edge_lookup_seconds_count 2`,
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("no line %q in\n%s", line, text)
			}
		}
	})
}

package eventloop_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

const metricCached = "linkstream_edge_requests_not_parsed_total"

// A loop that has seen header fields twice does not have them parsed any more.
func TestHeaderCache(t *testing.T) {
	s := start(t, 1, nil)
	conn := s.dial(t)
	cached := 0
	askLink := func(t *testing.T, request string, isCached bool) {
		t.Helper()
		if isCached {
			cached++
		}
		if resp := ask(t, conn, request); resp.StatusCode() != 302 || string(resp.Header.Peek("Location")) != location {
			t.Errorf("to %q the loop says %s", request, resp)
		}
		testkit.Equal(t, "requests of cached headers", int(s.cached.Load()), cached)
		s.awaitMetric(t, metricCached, cached)
	}
	learn := func(t *testing.T, request string) {
		t.Helper()
		for range untilCached - 1 {
			askLink(t, request, false)
		}
	}
	with := func(fields string) string { return "GET /link HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" }

	t.Run("answers what came twice", func(t *testing.T) {
		learn(t, with("X: a\r\n"))
		askLink(t, with("X: a\r\n"), true)
		askLink(t, with("X: a\r\n"), true)
	})
	t.Run("answers with any query", func(t *testing.T) {
		for _, query := range []string{"", "a=b", "?a&%zz=/:@'<>\"\\^`{|}~", strings.Repeat("q", 1<<10)} {
			askLink(t, strings.Replace(with("X: a\r\n"), "/link", "/link?"+query, 1), true)
		}
	})
	t.Run("does not answer other bytes", func(t *testing.T) {
		for _, request := range []string{
			with("X: b\r\n"), with("x: a\r\n"), with("X:  a\r\n"), with("X: a\r\nX: a\r\n"),
		} {
			askLink(t, request, false)
		}
	})
	t.Run("does not answer other request lines", func(t *testing.T) {
		for _, line := range []string{
			"GET /link?a=b#part HTTP/1.1\r\n", "GET /link?a=://b HTTP/1.1\r\n", "GET /link?\u00fc HTTP/1.1\r\n",
			"GET /link?" + strings.Repeat("q", 1<<10+1) + " HTTP/1.1\r\n", "GET /link HTTP/1.1\n", "GET /%6cink HTTP/1.1\r\n", "GET /x/../link HTTP/1.1\r\n",
			"GET http://a/link HTTP/1.1\r\n", "\r\nGET /link HTTP/1.1\r\n", "GET /link#part HTTP/1.1\r\n",
		} {
			request := line + "Host: a\r\nX: a\r\n\r\n"
			for range untilCached {
				askLink(t, request, false)
			}
		}
	})
	t.Run("leaves what the handler declines to it", func(t *testing.T) {
		request := strings.Replace(with("X: a\r\n"), "/link", "/page", 1)
		if resp := ask(t, conn, request); resp.StatusCode() != 404 {
			t.Errorf("the loop says %s", resp)
		}
		testkit.Equal(t, "requests of cached headers", int(s.cached.Load()), cached)
	})
	t.Run("keeps nothing that the handler refuses", func(t *testing.T) {
		asked := s.asked.Load()
		for range untilCached + 2 {
			askLink(t, with("X-Secret: a\r\n"), false)
		}
		testkit.Equal(t, "times that the handler was asked", s.asked.Load()-asked, 1)
	})
	t.Run("keeps nothing that is long", func(t *testing.T) {
		for range untilCached + 2 {
			askLink(t, with("X: "+strings.Repeat("y", 1<<10)+"\r\n"), false)
		}
	})
	t.Run("is not driven out by headers that come once", func(t *testing.T) {
		answer := make([]byte, 1000)
		for i := range 3 * 4096 { // three times what the loop holds
			_, err := io.WriteString(conn, with(fmt.Sprintf("X: flood %d\r\n", i)))
			testkit.Must(t, err)
			if n, err := conn.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 302 ") {
				t.Fatalf("the loop says %q, %v", answer[:n], err)
			}
		}
		askLink(t, with("X: a\r\n"), true)
	})
}

// What a cached header says of its connection holds.
func TestCachedHeaderCloses(t *testing.T) {
	s := start(t, 1, nil)
	for i := range untilCached {
		conn := s.dial(t)
		_, err := io.WriteString(conn, "GET /link HTTP/1.1\r\nHost: a\r\n"+end)
		testkit.Must(t, err)
		said, err := io.ReadAll(conn) // to the end, which is the server's doing
		testkit.Must(t, err)
		if !strings.HasSuffix(string(said), "\r\nConnection: close\r\n\r\n") {
			t.Errorf("answer %d is %q", i+1, said)
		}
		lasting := s.dial(t)
		for range 2 {
			if resp := ask(t, lasting, get("/link")); resp.ConnectionClose() {
				t.Errorf("answer %d closes a lasting connection", i+1)
			}
		}
	}
	testkit.Equal(t, "requests of cached headers", s.cached.Load(), 1+2*untilCached-2)
}

package redirect_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// A client that asks for one unknown link after the other is refused, without a look-up and on loops without a
// goroutine, and has its cached links all the same.
func TestFloodOfUnknownLinks(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		const flood, burst = 1000, 200
		e := newEdge(t, func(e *edge) { testkit.Must(t, e.cfg.TrustedProxies.Set("127.0.0.1")) })
		e.link(t, 0, "abc", "https://example.com/")
		e.link(t, 0, "cold", "https://example.com/")
		addr := e.serve(t, loops)
		send(t, addr, "GET", "http://sho.rt/abc")
		conn, err := net.Dial("tcp", addr)
		testkit.Must(t, err)
		defer conn.Close()
		testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		answers := bufio.NewReader(conn)
		ask := func(client, hash string) *http.Response {
			_, err := fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: sho.rt\r\nX-Forwarded-For: %s\r\n\r\n", hash, client)
			testkit.Must(t, err)
			resp, err := http.ReadResponse(answers, nil)
			testkit.Must(t, err)
			body, err := io.ReadAll(resp.Body)
			testkit.Must(t, err)
			if resp.StatusCode != 302 {
				checkPage(t, "GET", resp, string(body))
			}
			return resp
		}
		statuses := map[int]int{}
		before := e.metric(t, handedOver)
		for range flood {
			resp := ask("192.0.2.1", strings.ToLower(schema.NewHash()))
			statuses[resp.StatusCode]++
			if after := resp.Header.Get("Retry-After"); resp.StatusCode == 429 && after != "1" {
				t.Fatalf("Retry-After: %q", after)
			}
		}
		if n := statuses[404]; n < burst || n > 2*burst || n+statuses[429] != flood { // some time passes
			t.Errorf("answered %v", statuses)
		}
		if handed := e.metric(t, handedOver) - before; handed > 0 {
			t.Errorf("handed over %d times", handed)
		}
		testkit.Equal(t, "look-ups", e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`), 1+statuses[404])
		for _, c := range []struct {
			client, hash string
			status       int
		}{{"192.0.2.1", "abc", 302}, {"192.0.2.2", "cold", 302}, {"192.0.2.1", "cold", 302}, {"192.0.2.2", "none", 404}} {
			if resp := ask(c.client, c.hash); resp.StatusCode != c.status {
				t.Errorf("%s for %s: answered %d", c.hash, c.client, resp.StatusCode)
			}
		}
		testkit.Equal(t, "refusals", e.metric(t, `linkstream_edge_answers_total{status="429"}`), statuses[429])
	})
}

package redirect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// repeats is how often a request comes.
const repeats = 2

// visits returns the answers of the server at addr to a request that is sent several times, and the clicks, without the
// parts that differ by design.
func (e *edge) visits(t testing.TB, addr, request string) (answers []string, clicks []schema.Click) {
	t.Helper()
	for range repeats {
		answers = append(answers, say(t, addr, request))
	}
	clicks = e.clicks(t)
	for i := range clicks {
		clicks[i].Seq, clicks[i].ClickedAt, clicks[i].Lane = 0, time.Time{}, schema.Lane{}
	}
	return answers, clicks
}

// sameVisits checks that loops answer and record a request, each time it comes, as goroutines do. It returns the number
// of clicks.
func sameVisits(t testing.TB, goroutines, loops *edge, addrs [2]string, request string) (clicks int) {
	t.Helper()
	wantAnswers, wantClicks := goroutines.visits(t, addrs[0], request)
	gotAnswers, gotClicks := loops.visits(t, addrs[1], request)
	testkit.Equal(t, fmt.Sprintf("answers to %q", request), gotAnswers, wantAnswers)
	testkit.Equal(t, fmt.Sprintf("clicks of %q", request), gotClicks, wantClicks)
	return len(gotClicks)
}

// twoEdges returns edges that serve the same links, one by goroutines and one by a loop.
func twoEdges(t testing.TB, change func(*edge)) (goroutines, loops *edge, addrs [2]string) {
	goroutines = newEdge(t, change)
	loops = newEdge(t, func(e *edge) {
		if e.cfg.Visitors = goroutines.cfg.Visitors; change != nil {
			change(e)
		}
	})
	for i, e := range []*edge{goroutines, loops} {
		e.link(t, 0, "abc", "https://example.com/")
		e.link(t, 0, "off", "https://example.com/")
		storetest.SetActive(t, e.store, 0, "off", false)
		e.create(t, schema.Link{Hash: "expired", URL: "https://example.com/", ExpiresAt: time.Now()})
		e.create(t, schema.Link{Hash: "forward", URL: "https://example.com/?own=1", ForwardQuery: true})
		deleted := e.create(t, schema.Link{Hash: "deleted", URL: "https://example.com/"})
		testkit.Must(t, e.store.DeleteLink(t.Context(), deleted, time.Now()))
		e.link(t, e.domain(t, "go.example.com", true), "own", "https://own.example/")
		addrs[i] = e.serve(t, i)
	}
	return goroutines, loops, addrs
}

// Event loops give the same answers and record the same clicks as goroutines do, from memory.
func TestLoopsAnswerAsGoroutinesDo(t *testing.T) {
	const fields = "User-Agent: Browser/1.0\r\nReferer: https://from.example/\u00fc\r\nAccept-Language: de-AT, " +
		"en\r\nConnection: close\r\n\r\n"
	goroutines, loops, addrs := twoEdges(t, func(e *edge) { e.cfg.PublicHealth = true })
	for _, c := range []struct {
		name, path, host, fields string
		clicks                   int
	}{
		{"a link", "/abc", "sho.rt", fields, repeats},
		{"in capital letters, with a port", "/abc", "SHO.rt:80", fields, repeats},
		{"on a custom domain", "/own", "go.example.com", fields, repeats},
		{"of the default domain on a custom one", "/abc", "go.example.com", fields, 0},
		{"on an unknown domain", "/abc", "other.example.com", fields, 0},
		{"on what is no domain", "/abc", "a_b", fields, 0},
		{"with nothing about the visitor", "/abc", "sho.rt", "\r\n", repeats},
		{"with long fields", "/abc", "sho.rt", "Referer: " + strings.Repeat("y", 700) + "\r\n\r\n", repeats},
		{"with a cookie", "/abc", "sho.rt", "cookie: a=b\r\n\r\n", repeats},
		{"with a secret", "/abc", "sho.rt", "Authorization: a\r\n\r\n", repeats},
		{"with an address", "/abc", "sho.rt", "X-Forwarded-For: 192.0.2.1\r\n\r\n", repeats},
		{"a prefetch", "/abc", "sho.rt", "Sec-Purpose: prefetch;anonymous-client-ip\r\n\r\n", 0},
		{"a link that forwards queries, without one", "/forward", "sho.rt", fields, repeats},
		{"a link that forwards queries", "/forward?a=b&c=%20<ä", "sho.rt", fields, repeats},
		{"a link that forwards queries, of visible characters", "/forward?a=b&c=%zz?'<>", "sho.rt", fields, repeats},
		{"a link that forwards queries, with a part of the page", "/forward?a=b#part", "sho.rt", fields, repeats},
		{"a link that forwards queries, with an address in it", "/forward?a=b&u=https://a/", "sho.rt", fields, repeats},
		{"a link that does not forward queries", "/abc?a=b", "sho.rt", fields, repeats},
		{"the health with a query", "/healthz?a=b", "sho.rt", fields, 0},
		{"an inactive link", "/off", "sho.rt", fields, 0},
		{"an expired link", "/expired", "sho.rt", fields, 0},
		{"a deleted link", "/deleted", "sho.rt", fields, 0},
		{"an unknown link", "/unknown", "sho.rt", fields, 0},
		{"what cannot be a link", "/abcdefghijklmnopqrstuvwxyz", "sho.rt", fields, 0},
		{"the health", "/healthz", "sho.rt", fields, 0},
		{"the front page", "/", "sho.rt", fields, 0},
		{"robots.txt", "/robots.txt", "sho.rt", fields, 0},
		{"favicon.ico", "/favicon.ico", "sho.rt", fields, 0},
		{"the page about a link", "/abc+", "sho.rt", fields, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := fmt.Sprintf(" %s HTTP/1.1\r\nHost: %s\r\n%s", c.path, c.host, c.fields)
			testkit.Equal(t, "clicks", sameVisits(t, goroutines, loops, addrs, "GET"+request), c.clicks)
			testkit.Equal(t, "clicks of HEAD", sameVisits(t, goroutines, loops, addrs, "HEAD"+request), 0)
			before := loops.metric(t, handedOver)
			say(t, addrs[1], "HEAD"+request)
			if handed := loops.metric(t, handedOver) > before; handed != (c.path == "/abc+") { // which reads the store
				t.Errorf("handed over: %t", handed)
			}
		})
	}
}

// Behind trusted proxies, the header fields name the client.
func TestVisitorBehindProxies(t *testing.T) {
	goroutines, loops, addrs := twoEdges(t, func(e *edge) { testkit.Must(t, e.cfg.TrustedProxies.Set("127.0.0.0/8")) })
	for _, forwarded := range []string{"", "X-Forwarded-For: 203.0.113.7\r\n"} {
		request := "GET /abc HTTP/1.1\r\nHost: sho.rt\r\n" + forwarded + "\r\n"
		testkit.Equal(t, "clicks", sameVisits(t, goroutines, loops, addrs, request), repeats)
	}
}

// FuzzVisitor checks that event loops answer and record every request as goroutines do.
func FuzzVisitor(f *testing.F) {
	f.Add("/abc",
		"Host: sho.rt\r\nUser-Agent: a\r\nUSER-AGENT: b\r\nReferer:c\r\nReferer: d\r\nAccept-Language: ;\r\n\r\n")
	f.Add("/own", "Host: go.example.com:80\r\nPurpose: prefetch\r\nConnection: keep-alive\r\n\r\n")
	f.Add("/off", "host: Sho.rt.\nSec-Purpose: a\n b\n\n")
	f.Add("/forward?a=b&&%zz=?://", "Host: sho.rt\r\n\r\n")
	f.Add("/forward?x", "Host: sho.rt\r\nX-Forwarded-For: 192.0.2.1\r\nAccept-Language: \t de\r\n\r\n")
	// or the two may refuse at different times
	goroutines, loops, addrs := twoEdges(f, func(e *edge) { e.unknown = 1_000_000 })
	f.Fuzz(func(t *testing.T, path, fields string) {
		for range 2 { // the first time, the link may have to be looked up
			sameVisits(t, goroutines, loops, addrs, "GET "+path+" HTTP/1.1\r\n"+fields)
		}
	})
}

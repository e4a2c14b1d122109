package redirect_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

const (
	handedOver = "linkstream_edge_connections_handed_over_total"
)

// metric returns the value of a metric.
func (e *edge) metric(t testing.TB, name string) (n int) {
	t.Helper()
	var text bytes.Buffer
	e.metrics.WritePrometheus(&text)
	for line := range strings.Lines(text.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			_, err := fmt.Sscan(value, &n)
			testkit.Must(t, err)
			return n
		}
	}
	t.Fatalf("no metric %q in\n%s", name, &text)
	return 0
}

var date = regexp.MustCompile(`Date: [^\r]*\r\n`)

// say returns what the server at addr answers to a request, byte by byte but for the date.
func say(t testing.TB, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err = io.WriteString(conn, request)
	testkit.Must(t, err)
	testkit.Must(t, conn.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(conn)
	testkit.Must(t, err)
	return date.ReplaceAllString(string(answer), "")
}

// Answers from memory are those of the whole handler.
func TestInstantAnswers(t *testing.T) {
	e := newEdge(t, func(e *edge) { e.cfg.PublicHealth = true })
	e.link(t, 0, "abc", "https://bücher.example/ß?q=ü%20x#é")
	e.link(t, 0, "off", "https://example.com/")
	storetest.SetActive(t, e.store, 0, "off", false)
	e.create(t, schema.Link{Hash: "expired", URL: "https://example.com/", ExpiresAt: time.Now()})
	e.create(t, schema.Link{Hash: "forward", URL: "https://example.com/?own=1#part", ForwardQuery: true})
	testkit.Must(t, e.store.DeleteLink(t.Context(), e.create(t, schema.Link{Hash: "deleted", URL: "https://example.com/"}), time.Now()))
	e.link(t, e.domain(t, "go.example.com", true), "own", "https://own.example/")
	addr := e.serve(t, 1)
	for _, c := range []struct {
		name, host, path string
	}{
		{"a link", "sho.rt", "/abc"},
		{"a link of a custom domain", "go.example.com:80", "/own"},
		{"an inactive link", "sho.rt", "/off"},
		{"an expired link", "sho.rt", "/expired"},
		{"a deleted link", "sho.rt", "/deleted"},
		{"a link that forwards queries", "sho.rt", "/forward?a=b&c=%ff"},
		{"a link that forwards queries, without one", "sho.rt", "/forward?"},
		{"an unknown link", "sho.rt", "/other"},
		{"an unknown host", "other.example.com", "/abc"},
		{"no hash", "sho.rt", "/a/b"},
		{"the front page", "sho.rt", "/"},
		{"robots.txt", "sho.rt", "/robots.txt"},
		{"favicon.ico", "sho.rt", "/favicon.ico"},
		{"healthz", "sho.rt", "/healthz"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			for _, connection := range []string{"keep-alive", "close"} {
				t.Run(fmt.Sprint(c.name, " by ", method, ", ", connection), func(t *testing.T) {
					request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: %s\r\n", method, c.path, c.host, connection)
					whole := say(t, addr, request+"Expect: nothing\r\n\r\n") // which loops leave alone
					before := e.metric(t, handedOver)
					if got := say(t, addr, request+"\r\n"); got != whole || len(got) == 0 {
						t.Errorf("answered\n%q\nwant\n%q", got, whole)
					}
					if e.metric(t, handedOver) != before {
						t.Error("not from memory")
					}
				})
			}
		}
	}
}

func TestNobodyWaitsForLookups(t *testing.T) {
	e := newEdge(t, nil)
	e.link(t, 0, "abc", "https://example.com/")
	addr := e.serve(t, 1)
	send(t, addr, "GET", "http://sho.rt/abc")
	asked, release := make(chan struct{}), make(chan struct{})
	e.store.inject(func() error { close(asked); <-release; return nil })
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, _ := send(t, addr, "GET", "http://sho.rt/other"); resp.StatusCode != 404 {
			t.Errorf("answered %d", resp.StatusCode)
		}
	}()
	<-asked
	for range 10 {
		if resp, _ := send(t, addr, "GET", "http://sho.rt/abc"); resp.StatusCode != 302 {
			t.Errorf("answered %d while the store hangs", resp.StatusCode)
		}
	}
	e.store.inject(nil)
	close(release)
	<-done
	if n := len(e.clicks(t)); n != 11 {
		t.Errorf("%d clicks, want 11", n)
	}
}

// A link that has to be looked up again needs no goroutine, whether or not the store answers.
func TestOutdatedLinksStayOnLoops(t *testing.T) {
	e := newEdge(t, nil)
	e.link(t, 0, "abc", "https://example.com/")
	addr := e.serve(t, 1)
	send(t, addr, "GET", "http://sho.rt/abc")
	before := e.metric(t, handedOver)
	for name, fault := range map[string]func() error{"up": nil, "down": func() error { return errors.New("down") }} {
		e.resolver.Drop(schema.Change{Hash: "abc"})
		e.store.inject(fault)
		if resp, _ := send(t, addr, "GET", "http://sho.rt/abc"); resp.StatusCode != 302 {
			t.Errorf("answered %d while the store is %s", resp.StatusCode, name)
		}
	}
	testkit.Equal(t, "handed over", e.metric(t, handedOver), before)
	testkit.Equal(t, "clicks", len(e.clicks(t)), 3)
}

// Where memory has no room for a click, Serve finds some, or drops the click and says so.
func TestInstantAnswersWithoutRoomForClicks(t *testing.T) {
	e := newEdge(t, func(e *edge) {
		e.spoolCfg.Lanes, e.spoolCfg.SegmentBytes, e.spoolCfg.MaxBytes = 1, 4<<10, 16<<10
	})
	e.link(t, 0, "abc", "https://example.com/")
	addr := e.serve(t, 1)
	answered := 0
	for e.spool.Dropped() < 10 {
		if resp, _ := send(t, addr, "GET", "http://sho.rt/abc"); resp.StatusCode != 302 {
			t.Fatalf("redirect %d: status %d", answered, resp.StatusCode)
		}
		answered++
	}
	if n := len(e.clicks(t)); n+10 != answered {
		t.Errorf("%d clicks in the spool and 10 dropped, of %d", n, answered)
	}
	if n := e.metric(t, `linkstream_edge_answers_total{status="302"}`); n != answered {
		t.Errorf("%d redirects counted, want %d", n, answered)
	}
}

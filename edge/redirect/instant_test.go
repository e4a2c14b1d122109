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

// say returns the bytes that the server at addr answers to a request, without the date.
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

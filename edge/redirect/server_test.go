package redirect_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// exchange returns what the server at addr answers to write, which runs until it is done or the connection is closed.
// The server has to close it within 10 s.
func exchange(t *testing.T, addr string, write func(net.Conn)) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	writing.Go(func() { write(conn) })
	answer, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server did not close the connection")
	}
	conn.Close()
	writing.Wait()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
	if err != nil {
		t.Fatalf("read answer %q: %v", answer, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestServerCutsOff(t *testing.T) {
	e := newEdge(t, func(e *edge) {
		e.cfg.ReadTimeout, e.cfg.IdleTimeout, e.cfg.MaxHeaderBytes = 200*time.Millisecond, 200*time.Millisecond, 2<<10
	})
	addr := e.serve(t)
	for _, c := range []struct {
		name   string
		write  func(net.Conn)
		status int
	}{
		{"a client that dribbles its header", func(conn net.Conn) {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for _, b := range []byte("GET /abc HTTP/1.1\r\nHost: sho.rt\r\nX: " + strings.Repeat("y", 2000)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				<-tick.C
			}
		}, 408},
		{"a client that sends nothing", func(net.Conn) {}, 408},
		{"a client that stops in the middle", raw("GET /abc HTTP/1.1\r\nHost: sho"), 408},
		{"a body that does not come", raw("GET /abc HTTP/1.1\r\nHost: sho.rt\r\nContent-Length: 5\r\n\r\nab"), 408},
		{"a header too large", raw("GET /abc HTTP/1.1\r\nHost: sho.rt\r\nX: " + strings.Repeat("y", 3<<10) + "\r\n\r\n"), 431},
		{"a path too long", raw("GET /" + strings.Repeat("a", 3<<10) + " HTTP/1.1\r\nHost: sho.rt\r\n\r\n"), 431},
		{"a body too large", raw("POST /abc HTTP/1.1\r\nHost: sho.rt\r\nContent-Length: 2000\r\n\r\n"), 413},
		{"what is not HTTP", raw("hello\r\n\r\n"), 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := exchange(t, addr, c.write)
			if resp.StatusCode != c.status || !resp.Close {
				t.Errorf("answered %d, closing: %t; want %d", resp.StatusCode, resp.Close, c.status)
			}
			checkPage(t, "GET", resp, body)
		})
	}
	t.Run("a connection that is idle after its first request", func(t *testing.T) {
		resp, _ := exchange(t, addr, raw("GET / HTTP/1.1\r\nHost: sho.rt\r\n\r\n"))
		if resp.StatusCode != 200 {
			t.Errorf("answered %d", resp.StatusCode)
		}
	})
}

// raw writes text, as far as the server lets it.
func raw(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

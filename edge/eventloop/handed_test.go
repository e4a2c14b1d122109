package eventloop_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"linkstream/schema/testkit"
)

// What a goroutine gets from a loop is a net.Conn in every respect.
func TestHandedOverConnectionIsAConnection(t *testing.T) {
	t.Parallel()
	s := start(t, 1, nil)
	t.Cleanup(func() { close(s.release) })
	nettest.TestConn(t, func() (server, client net.Conn, stop func(), err error) {
		client, err = net.Dial("tcp", s.addr)
		if err != nil {
			return nil, nil, nil, err
		}
		if _, err := io.WriteString(client, get("/hijack")); err != nil {
			return nil, nil, nil, err
		}
		server = <-s.hijacked
		return server, client, func() { server.Close(); client.Close() }, nil
	})
}

func TestConnectionComesBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string
	}{
		{"after a look-up in the store", []string{get("/store")}},
		{"after a request that came in two packets", []string{"GET /link HT", "TP/1.1\r\nHost: a\r\n\r\n"}},
		{"after a request that came byte by byte", strings.Split(get("/link"), "")},
		{"after a body", []string{"POST /store HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", "abc"}},
		{"after a body that was asked for", []string{"POST /store HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", "abc"}},
		{"after a body in chunks", []string{"POST /store HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n", "abc\r\n0\r", "\n\r\n"}},
		{"after an upgrade that was declined", []string{"GET /link HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, 1, nil)
			conn := s.dial(t)
			for round := range 3 {
				for i, piece := range c.pieces {
					if i > 0 {
						time.Sleep(pieceGap)
					}
					if _, err := io.WriteString(conn, piece); err != nil {
						t.Fatal(err)
					}
				}
				resp, err := readAnswer(conn)
				if err == nil && resp.StatusCode() == 100 {
					resp, err = readAnswer(conn)
				}
				if err != nil || resp.StatusCode() >= 400 {
					t.Fatalf("answered %v, error %v", resp, err)
				}
				testkit.Eventually(t, "the connection is back", func() bool { return s.metric(t, metricBack) == s.metric(t, metricHanded) })
				handed := s.metric(t, metricHanded) // pieces may arrive together after all
				if handed > round+1 || handed <= round && len(c.pieces) == 1 {
					t.Fatalf("handed over %d times in %d rounds", handed, round+1)
				}
				tried := s.tried.Load()
				if resp := ask(t, conn, get("/link")); resp.StatusCode() != 302 || s.tried.Load() != tried+1 {
					t.Errorf("then: answered %d, by the loop: %t", resp.StatusCode(), s.tried.Load() > tried)
				}
			}
			if open := s.metric(t, metricOpen); open != 1 {
				t.Errorf("%d connections open", open)
			}
		})
	}
	t.Run("with the requests that came meanwhile", func(t *testing.T) {
		s := start(t, 1, nil)
		conn := s.dial(t)
		if _, err := io.WriteString(conn, get("/wait")); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the request is under way", func() bool { return s.waiting.Load() == 1 })
		if _, err := io.WriteString(conn, get("/link")+get("/store")+get("/page")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pieceGap) // the loop is told of them, and leaves them
		close(s.gate)
		for _, want := range []int{200, 302, 200, 404} {
			if resp, err := readAnswer(conn); err != nil || resp.StatusCode() != want {
				t.Fatalf("answered %v, error %v, want %d", resp, err, want)
			}
		}
	})
}

// A goroutine's connection is in no list of the loop, which must not close it, however long its request takes.
func TestRequestUnderWayIsNotIdle(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, loops int) {
		t.Parallel()
		s := start(t, loops, func(s *site) {
			s.cfg.ReadTimeout, s.cfg.IdleTimeout = short, short
		})
		conn := s.dial(t)
		if _, err := io.WriteString(conn, get("/wait")); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the request is under way", func() bool { return s.waiting.Load() == 1 })
		time.Sleep(2 * short)
		close(s.gate)
		if resp, err := readAnswer(conn); err != nil || string(resp.Body()) != "waited" {
			t.Errorf("answered %v, error %v", resp, err)
		}
	})
}

func TestHandlersKnowAddresses(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
			t.Run(listen, func(t *testing.T) {
				ln, err := net.Listen("tcp", listen)
				if err != nil {
					t.Fatal(err)
				}
				s := start(t, loops, func(s *site) { s.ln = ln })
				addr := *ln.Addr().(*net.TCPAddr)
				if addr.IP.IsUnspecified() {
					addr.IP = net.IPv4(127, 0, 0, 1)
				}
				s.addr = addr.String()
				conn := s.dial(t)
				body := string(ask(t, conn, get("/address")).Body())
				if !strings.HasPrefix(body, fmt.Sprint(conn.LocalAddr(), " to ")) {
					t.Errorf("the client is %s, the handler sees %s", conn.LocalAddr(), body)
				}
			})
		}
	})
}

package eventloop_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// A connection that a loop has left to a goroutine stays with it: requests of either kind are answered there.
func TestGoroutineKeepsItsConnection(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string
	}{
		{"after a look-up in the store", []string{get("/store")}},
		{"after a request that came in two packets", []string{"GET /link HT", "TP/1.1\r\nHost: a\r\n\r\n"}},
		{"after a request that came byte by byte", strings.Split(get("/link"), "")},
		{"after a body", []string{"POST /store HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", "abc"}},
		{"after a body that was asked for",
			[]string{"POST /store HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", "abc"}},
		{"after a body in chunks",
			[]string{"POST /store HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n", "abc\r\n0\r", "\n\r\n"}},
		{"after an upgrade that was declined", []string{"GET /link HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, 1, nil)
			conn := s.dial(t)
			for range 3 {
				for i, piece := range c.pieces {
					if i > 0 {
						time.Sleep(pieceGap)
					}
					_, err := io.WriteString(conn, piece)
					testkit.Must(t, err)
				}
				resp, err := readAnswer(conn)
				if err == nil && resp.StatusCode() == 100 {
					resp, err = readAnswer(conn)
				}
				if err != nil || resp.StatusCode() >= 400 {
					t.Fatalf("answered %v, error %v", resp, err)
				}
				testkit.Equal(t, "status", ask(t, conn, get("/link")).StatusCode(), 302)
			}
			if handed := s.metric(t, metricHanded); handed > 1 || len(c.pieces) == 1 && handed == 0 {
				t.Errorf("handed over %d times", handed) // pieces may arrive together after all
			}
			testkit.Equal(t, "connections", s.metric(t, metricOpen), 1)
			testkit.Equal(t, "status of another client", ask(t, s.dial(t), get("/link")).StatusCode(), 302)
			testkit.Must(t, conn.Close())
			s.awaitMetric(t, metricOpen, 1)
		})
	}
	t.Run("with the requests that came meanwhile", func(t *testing.T) {
		s := start(t, 1, nil)
		conn := s.dial(t)
		_, err := io.WriteString(conn, get("/wait"))
		testkit.Must(t, err)
		testkit.Eventually(t, "the request is under way", func() bool { return s.waiting.Load() == 1 })
		_, err = io.WriteString(conn, get("/link")+get("/store")+get("/page"))
		testkit.Must(t, err)
		close(s.gate)
		wantStatuses(t, conn, 200, 302, 200, 404)
	})
}

// A client that has made an unusual request does not cost a goroutine for as long as it likes.
func TestConnectionsOfGoroutinesAreBounded(t *testing.T) {
	t.Run("in requests", func(t *testing.T) {
		s := start(t, 1, nil)
		conn := s.dial(t)
		ask(t, conn, get("/store"))
		for i := range 32 {
			testkit.Equal(t, "the last request", ask(t, conn, get("/link")).ConnectionClose(), i == 31)
		}
		wantEnd(t, conn, "")
		tried := s.tried.Load()
		testkit.Equal(t, "status", ask(t, s.dial(t), get("/link")).StatusCode(), 302)
		testkit.Equal(t, "answers of the loop", s.tried.Load()-tried, 1)
	})
	t.Run("in number", func(t *testing.T) {
		const most = 1024
		s := start(t, 1, func(s *site) { s.cfg.MaxConnectionsPerAddress = 0 })
		for i := range most + 10 {
			resp := ask(t, s.dial(t), get("/store"))
			testkit.Equal(t, fmt.Sprintf("connection %d ends", i), resp.ConnectionClose(), i >= most)
		}
		s.awaitMetric(t, metricOpen, most)
		testkit.Equal(t, "status", ask(t, s.dial(t), get("/link")).ConnectionClose(), false)
	})
	t.Run("in time", func(t *testing.T) {
		s := start(t, 1, func(s *site) { s.cfg.IdleTimeout = short })
		conn := s.dial(t)
		ask(t, conn, get("/store"))
		wantEnd(t, conn, "")
		s.awaitMetric(t, metricOpen, 0)
	})
	t.Run("by others that need room", func(t *testing.T) {
		s := start(t, 1, func(s *site) { s.cfg.MaxConnections, s.cfg.IdleTimeout = 4, time.Hour })
		var conns []net.Conn
		for i := range 4 { // of a goroutine and of the loop, by turns
			conn := s.dial(t)
			ask(t, conn, get([]string{"/store", "/link"}[i%2]))
			conns = append(conns, conn)
		}
		for range 3 {
			testkit.Equal(t, "status", ask(t, s.dial(t), get("/link")).StatusCode(), 302)
		}
		wantEnds(t, conns, 3)
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

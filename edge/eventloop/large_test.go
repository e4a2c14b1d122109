package eventloop_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// Cookies of a site arrive at a short domain below it, on new and on lasting connections, with and without TLS, also
// in pieces.
func TestLargeHeaders(t *testing.T) {
	try := func(t *testing.T, dial func() net.Conn) {
		for _, size := range []int{8<<10 + 1, 9 << 10, 20 << 10, 32 << 10} {
			for _, piece := range []int{size, 8 << 10, 3000, 1400} {
				conn := dial()
				testkit.Equal(t, "an ordinary request", ask(t, conn, get("/link")).StatusCode(), 302)
				testkit.Equal(t, "another one", ask(t, conn, get("/store")).StatusCode(), 200)
				for rest := header(size); len(rest) > 0; {
					n := min(piece, len(rest))
					_, err := io.WriteString(conn, rest[:n])
					testkit.Must(t, err)
					if rest = rest[n:]; len(rest) > 0 {
						time.Sleep(pieceGap)
					}
				}
				resp, err := readAnswer(conn)
				if err != nil || resp.StatusCode() != 302 || !resp.ConnectionClose() {
					t.Errorf("%d bytes in pieces of %d: answered %v, error %v", size, piece, resp, err)
				}
				wantEnd(t, conn, "")
				conn.Close()
				conn = dial()
				resp = ask(t, conn, header(size)) // as the first request
				testkit.Equal(t, "status", resp.StatusCode(), 302)
				conn.Close()
			}
		}
		conn := dial()
		testkit.Equal(t, "too large", ask(t, conn, header(32<<10+1)).StatusCode(), 431)
		conn.Close()
	}
	eachWay(t, func(t *testing.T, loops int) {
		s := start(t, loops, nil)
		try(t, func() net.Conn { return s.dial(t) })
	})
	t.Run("over TLS", func(t *testing.T) {
		s := startSecure(t, 1, nil)
		try(t, func() net.Conn { return s.dialTLS(t) })
	})
	t.Run("behind a proxy that names clients", func(t *testing.T) {
		s := start(t, 0, proxies)
		try(t, func() net.Conn {
			conn := s.dial(t)
			_, err := io.WriteString(conn, v1)
			testkit.Must(t, err)
			return conn
		})
	})
}

// stall opens a connection from an address, and sends the start of a header.
func (s *site) stall(t testing.TB, addr string, size int) net.Conn {
	t.Helper()
	conn := s.dialFrom(t, addr)
	_, err := io.WriteString(conn, header(size + 100)[:size])
	testkit.Must(t, err)
	return conn
}

// An address that sends large headers slowly has a share of their memory, for a bounded time. Others are answered.
func TestLargeHeadersAreBounded(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		s := start(t, loops, func(s *site) { s.cfg.ReadTimeout = testkit.Patience })
		var stalled []net.Conn
		for range 64 + 16 {
			stalled = append(stalled, s.stall(t, "127.0.0.1", 20<<10))
		}
		testkit.Eventually(t, "what is over the share is refused", func() bool { return s.rejected.Load() >= 16 })
		testkit.Equal(t, "one more", ask(t, s.dialFrom(t, "127.0.0.1"), header(9<<10)).StatusCode(), 431)
		testkit.Equal(t, "refused", s.rejected.Load(), 16+1)
		testkit.Equal(t, "an ordinary request", ask(t, s.dialFrom(t, "127.0.0.1"), get("/link")).StatusCode(), 302)
		testkit.Equal(t, "another address", ask(t, s.dialFrom(t, "127.0.0.2"), header(32<<10)).StatusCode(), 302)
		for _, conn := range stalled {
			testkit.Must(t, conn.Close())
		}
		testkit.Eventually(t, "the share is free", func() bool {
			resp, err := tryAsk(s.dialFrom(t, "127.0.0.1"), header(9<<10))
			return err == nil && resp.StatusCode() == 302
		})
	})
}

func TestSlowLargeHeadersTimeOut(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		s := start(t, loops, func(s *site) { s.cfg.ReadTimeout = time.Second })
		wantEnd(t, s.stall(t, "127.0.0.1", 20<<10), "408")
	})
}

// Thousands of connections with large headers take the memory of ordinary ones.
func TestMemoryOfLargeHeaders(t *testing.T) {
	const conns, bound = 2000, 64 << 20
	for name, size := range map[string]int{"that are not whole": 31 << 10, "of which half is there": 7 << 10} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, loops int) {
				s := start(t, loops, func(s *site) {
					s.cfg.MaxConnectionsPerAddress, s.cfg.ReadTimeout = 0, testkit.Patience
				})
				before := testkit.Heap()
				for i := range conns {
					s.stall(t, fmt.Sprintf("127.0.0.%d", 1+i%20), size)
				}
				testkit.Eventually(t, "what is over the bound is answered", func() bool {
					return s.rejected.Load() >= conns-512 || size < 8<<10
				})
				if grown := testkit.Heap() - before; grown > bound {
					t.Errorf("%d connections take %d bytes", conns, grown)
				}
				resp := ask(t, s.dialFrom(t, "127.0.0.200"), get("/link"))
				testkit.Equal(t, "an ordinary request", resp.StatusCode(), 302)
			})
		})
	}
}

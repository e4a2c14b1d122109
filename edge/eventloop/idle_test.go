package eventloop_test

import (
	"io"
	"net"
	"testing"

	"linkstream/schema/testkit"
)

// Without loops, the connection that has waited longest makes room as well. A connection that sends nothing waits
// from the start.
func TestLongestIdleMakesRoomWithoutLoops(t *testing.T) {
	for name, proxied := range map[string]bool{"of goroutines": false, "behind the PROXY protocol": true} {
		t.Run(name, func(t *testing.T) {
			header := ""
			s := start(t, 0, func(s *site) {
				if s.cfg.MaxConnections, s.cfg.MaxConnectionsPerAddress = 10, 0; proxied {
					proxies(s)
					s.cfg.Loops, header = 1, v1 // which serve nothing
				}
				s.cfg.ReadTimeout = testkit.Patience
			})
			var conns []net.Conn
			for range 10 {
				conns = append(conns, s.dial(t))
			}
			for _, i := range []int{0, 1, 4} {
				_, err := io.WriteString(conns[i], header+get("/wait"))
				testkit.Must(t, err)
			}
			testkit.Eventually(t, "three are in use", func() bool { return s.waiting.Load() == 3 })
			for range 4 {
				if resp := ask(t, s.dial(t), header+get("/link")); resp.StatusCode() != 302 {
					t.Errorf("a new client is answered %d", resp.StatusCode())
				}
			}
			s.awaitMetric(t, metricShed, 4)
			close(s.gate)
			for i, conn := range conns {
				switch i {
				case 2, 3, 5, 6:
					wantEnd(t, conn, "")
				case 0, 1, 4:
					if resp, err := readAnswer(conn); err != nil || string(resp.Body()) != "waited" {
						t.Errorf("connection %d: %v, error %v", i, resp, err)
					}
				default:
					if resp, err := tryAsk(conn, header+get("/link")); err != nil || resp.StatusCode() != 302 {
						t.Errorf("connection %d: %v, error %v", i, resp, err)
					}
				}
			}
		})
	}
}

// When all connections are in use, a client that says nothing does not keep others from being accepted.
func TestSilentClientsDoNotStopHTTPS(t *testing.T) {
	s := startSecure(t, 1, func(s *site) {
		s.cfg.MaxConnections, s.cfg.MaxConnectionsPerAddress = 8, 0
		s.cfg.ReadTimeout = testkit.Patience
	})
	for range 8 {
		ask(t, s.dialTLS(t), get("/link"))
	}
	for range 4 {
		s.dial(t)
	}
	for range 4 {
		testkit.Equal(t, "the answer to a visitor", ask(t, s.dialTLS(t), get("/link")).StatusCode(), 302)
	}
}

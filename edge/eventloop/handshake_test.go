package eventloop_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

const (
	metricHandshakesFull    = `linkstream_edge_tls_handshakes_refused_total{reason="full"}`
	metricHandshakesAddress = `linkstream_edge_tls_handshakes_refused_total{reason="address"}`
	metricHandshakesWait    = `linkstream_edge_tls_handshakes_waiting`
)

// dialSilent opens connections that begin a handshake and send no more.
func (s *secureSite) dialSilent(t *testing.T, count int, header func(int) string) (conns []net.Conn) {
	t.Helper()
	for i := range count {
		conn := s.dial(t)
		_, err := io.WriteString(conn, header(i)+"\x16\x03\x01")
		testkit.Must(t, err)
		conns = append(conns, conn)
	}
	return conns
}

func noHeader(int) string { return "" }

// wantEnds waits until want of the connections have ended, and fails if more end.
func wantEnds(t *testing.T, conns []net.Conn, want int) {
	t.Helper()
	ends := make(chan bool, len(conns))
	for _, conn := range conns {
		go func() {
			_, err := conn.Read(make([]byte, 1))
			ends <- !isTimeout(err)
		}()
	}
	for range want {
		testkit.Equal(t, "ended by the server", <-ends, true)
	}
	for _, conn := range conns {
		testkit.Must(t, conn.SetReadDeadline(time.Now()))
	}
	for range len(conns) - want {
		testkit.Equal(t, "one more has ended", <-ends, false)
	}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

func TestHandshakesOfOneNetworkAreBounded(t *testing.T) {
	t.Run("by address", func(t *testing.T) {
		s := startSecure(t, 1, func(s *site) { s.cfg.MaxHandshakesPerAddress, s.cfg.ReadTimeout = 3, time.Hour })
		conns := s.dialSilent(t, 5, noHeader)
		wantEnds(t, conns, 2)
		s.awaitMetric(t, metricHandshakesAddress, 2)
		testkit.Eventually(t, "the log says so", func() bool { return s.log.Count("-edge.max-handshakes-per-address") == 1 })
		other := tls.Client(s.dialFrom(t, "127.0.0.2"), s.client)
		ask(t, other, get("/link"))
		for _, conn := range conns {
			conn.Close()
		}
		testkit.Eventually(t, "there is room again", func() bool { return s.metric(t, metricOpen) == 1 })
		for range 5 { // connections that have shaken hands do not count
			ask(t, s.dialTLS(t), get("/link"))
		}
	})
	t.Run("an IPv6 /48 is one network", func(t *testing.T) {
		s := startSecure(t, 1, func(s *site) {
			proxies(s)
			s.cfg.MaxHandshakesPerAddress, s.cfg.ReadTimeout = 2, time.Hour
		})
		wantEnds(t, s.dialSilent(t, 4, func(i int) string { return v2(t, fmt.Sprintf("[2001:db8:1:%d::1]:1", i)) }), 2)
		wantEnds(t, s.dialSilent(t, 4, func(i int) string { return v2(t, fmt.Sprintf("[2001:db8:%d::1]:1", 2+i)) }), 0)
	})
}

func TestHandshakesMakeRoom(t *testing.T) {
	s := startSecure(t, 1, func(s *site) { s.cfg.MaxHandshakes, s.cfg.ReadTimeout = 3, time.Hour })
	wantEnds(t, s.dialSilent(t, 5, noHeader), 2)
	s.awaitMetric(t, metricHandshakesFull, 2)
	ask(t, s.dialTLS(t), get("/link")) // takes the place of another one
	s.awaitMetric(t, metricHandshakesFull, 3)
}

// held is a server whose handshakes stop in the middle of their computation.
type held struct {
	*secureSite
	computing chan string   // gets the first label of the name of each
	goOn      chan struct{} // lets one go on
}

func startHeld(t *testing.T, cpus int, timeout time.Duration) *held {
	h := &held{computing: make(chan string), goOn: make(chan struct{})}
	h.secureSite = startSecure(t, 1, func(s *site) {
		s.cfg.HandshakeCPUs, s.cfg.ReadTimeout = cpus, timeout
		s.secure = func(config *tls.Config) {
			config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				name, _, _ := strings.Cut(hello.ServerName, ".")
				wait := func() {
					h.computing <- name
					<-h.goOn
				}
				switch name {
				case "fast":
				case "idle":
					hello.Conn.(interface{ Idle(func()) }).Idle(wait)
				default:
					wait()
				}
				return nil, nil
			}
		}
	})
	return h
}

// shake begins a handshake.
func (h *held) shake(t *testing.T, addr, name string) (ended chan error) {
	t.Helper()
	conn := tls.Client(h.dialFrom(t, addr), &tls.Config{ServerName: name + ".example", InsecureSkipVerify: true})
	ended = make(chan error, 1)
	go func() {
		_, err := tryAsk(conn, get("/link"))
		ended <- err
	}()
	return ended
}

func TestHandshakesTakeTurns(t *testing.T) {
	t.Parallel()
	t.Run("one network after the other", func(t *testing.T) {
		h := startHeld(t, 1, time.Hour)
		var all []chan error
		begin := func(addr, name string, waiting int) {
			all = append(all, h.shake(t, addr, name))
			if waiting == 0 {
				testkit.Equal(t, "computing", <-h.computing, name)
			}
			testkit.Eventually(t, name+" waits", func() bool { return h.metric(t, metricHandshakesWait) == waiting })
		}
		begin("127.0.0.1", "a1", 0)
		begin("127.0.0.1", "a2", 1)
		begin("127.0.0.1", "a3", 2)
		begin("127.0.0.2", "b1", 3)
		begin("127.0.0.3", "c1", 4)
		plain, err := net.Dial("tcp", h.plainAddr)
		testkit.Must(t, err)
		defer plain.Close()
		ask(t, plain, get("/link"))
		for _, next := range []string{"a2", "b1", "c1", "a3"} {
			h.goOn <- struct{}{}
			testkit.Equal(t, "next", <-h.computing, next)
		}
		h.goOn <- struct{}{}
		for _, ended := range all {
			testkit.Must(t, <-ended)
		}
	})
	t.Run("on as many CPUs as they may have", func(t *testing.T) {
		h := startHeld(t, 2, time.Hour)
		first, second := h.shake(t, "127.0.0.1", "a"), h.shake(t, "127.0.0.1", "a")
		<-h.computing
		<-h.computing
		third := h.shake(t, "127.0.0.1", "fast")
		testkit.Eventually(t, "the third one waits", func() bool { return h.metric(t, metricHandshakesWait) == 1 })
		h.goOn <- struct{}{}
		testkit.Must(t, <-third)
		h.goOn <- struct{}{}
		testkit.Must(t, errors.Join(<-first, <-second))
	})
	t.Run("while they wait for the client or for something else, others compute", func(t *testing.T) {
		h := startHeld(t, 1, time.Hour)
		h.dialSilent(t, 3, noHeader)
		idle := h.shake(t, "127.0.0.1", "idle")
		testkit.Equal(t, "waits", <-h.computing, "idle")
		testkit.Must(t, <-h.shake(t, "127.0.0.1", "fast"))
		h.goOn <- struct{}{}
		testkit.Must(t, <-idle)
	})
	t.Run("whose time is over when its turn comes, does not compute", func(t *testing.T) {
		h := startHeld(t, 1, time.Second)
		first := h.shake(t, "127.0.0.1", "first")
		testkit.Equal(t, "computing", <-h.computing, "first")
		second := h.shake(t, "127.0.0.1", "second")
		testkit.Eventually(t, "the second one waits", func() bool { return h.metric(t, metricHandshakesWait) == 1 })
		began := time.Now()
		testkit.Eventually(t, "its time is over", func() bool { return time.Since(began) > h.cfg.ReadTimeout })
		h.goOn <- struct{}{}
		select {
		case name := <-h.computing:
			t.Errorf("%s computes", name)
			h.goOn <- struct{}{}
		case err := <-second:
			if err == nil {
				t.Error("the second one shakes hands")
			}
		}
		<-first
	})
}

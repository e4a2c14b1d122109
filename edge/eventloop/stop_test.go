package eventloop_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// stopsWithin is how soon a server stops for which no request is under way, or whose grace is over.
const stopsWithin = 5 * time.Second

func TestStop(t *testing.T) {
	t.Run("closes idle connections at once", func(t *testing.T) {
		eachWay(t, func(t *testing.T, loops int) {
			testkit.Follows(t, stopsWithin, func(int) func() error {
				s := start(t, loops, nil)
				conn := s.dial(t)
				ask(t, conn, get("/link"))
				return func() error {
					s.stop()
					wantEnd(t, conn, "")
					if conn, err := net.Dial("tcp", s.addr); err == nil {
						t.Error("the port is open")
						conn.Close()
					}
					return nil
				}
			})
		})
	})
	t.Run("lets requests under way finish", func(t *testing.T) {
		eachWay(t, func(t *testing.T, loops int) {
			s := start(t, loops, nil)
			conn := s.dial(t)
			io.WriteString(conn, get("/wait"))
			testkit.Eventually(t, "the request is under way", func() bool { return s.waiting.Load() == 1 })
			stopped := make(chan struct{})
			go func() { s.stop(); close(stopped) }()
			awaitClosed(t, s.addr)
			select {
			case <-stopped:
				t.Error("Serve returned with a request under way")
			default:
			}
			close(s.gate)
			if resp, err := readAnswer(conn); err != nil || string(resp.Body()) != "waited" || !resp.ConnectionClose() {
				t.Errorf("answered %v, error %v", resp, err)
			}
			wantEnd(t, conn, "")
			<-stopped
		})
	})
	t.Run("waits no longer than grace", func(t *testing.T) {
		eachWay(t, func(t *testing.T, loops int) {
			testkit.Follows(t, stopsWithin, func(int) func() error {
				s := start(t, loops, func(s *site) { s.grace = short })
				conn := s.dial(t)
				io.WriteString(conn, get("/wait"))
				testkit.Eventually(t, "the request is under way", func() bool { return s.waiting.Load() == 1 })
				return func() error {
					began := time.Now()
					s.stop()
					if took := time.Since(began); took < short {
						t.Errorf("took %v", took)
					}
					close(s.gate)
					wantEnd(t, conn, "")
					testkit.Eventually(t, "the connection is closed", func() bool { return s.metric(t, metricOpen) == 0 })
					return nil
				}
			})
		})
	})
	t.Run("waits no longer than grace and a second for a loop that is stuck", func(t *testing.T) {
		for _, loops := range []int{1, 3} {
			s := start(t, loops, func(s *site) { s.grace, s.stuck = short, true })
			hold, idle := s.dial(t), s.dial(t)
			ask(t, idle, get("/link"))
			io.WriteString(hold, get("/hold"))
			testkit.Eventually(t, "a loop is held", func() bool { return s.waiting.Load() == 1 })
			s.stop()
			close(s.gate)
			wantEnd(t, hold, "302")
			wantEnd(t, idle, "")
			testkit.Eventually(t, "all connections are closed", func() bool { return s.metric(t, metricOpen) == 0 })
		}
	})
	t.Run("answers what was received", func(t *testing.T) {
		for _, loops := range []int{1, 3} {
			s := start(t, loops, nil)
			var idle []net.Conn
			for range 5 {
				conn := s.dial(t)
				ask(t, conn, get("/link"))
				idle = append(idle, conn)
			}
			hold := s.dial(t)
			io.WriteString(hold, get("/hold")) // its loop does nothing else until it is let go
			testkit.Eventually(t, "a loop is held", func() bool { return s.waiting.Load() == 1 })
			for _, conn := range idle {
				io.WriteString(conn, get("/link"))
			}
			for range 5 { // wait for accept
				conn := s.dial(t)
				io.WriteString(conn, get("/link"))
				idle = append(idle, conn)
			}
			stopped := make(chan struct{})
			go func() { s.stop(); close(stopped) }()
			if loops == 1 {
				time.Sleep(short) // the loop has the message to stop before it goes on
			}
			close(s.gate)
			for i, conn := range append(idle, hold) {
				if resp, err := readAnswer(conn); err != nil || resp.StatusCode() != 302 {
					t.Errorf("connection %d of %d loops: answered %v, error %v", i, loops, resp, err)
				}
			}
			<-stopped
		}
	})
}

// inherit returns a listener on a socket that stays open when the listener is closed, as one that a service manager
// passes.
func inherit(t *testing.T, socket *os.File) net.Listener {
	t.Helper()
	ln, err := net.FileListener(socket)
	testkit.Must(t, err)
	return ln
}

// A socket that outlives its server keeps the queue of connections for the next one.
func TestRestartLosesNoConnection(t *testing.T) {
	for _, loops := range []int{1, 3} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		socket, err := ln.(*net.TCPListener).File()
		testkit.Must(t, err)
		defer socket.Close()
		done := make(chan struct{})
		var visitors sync.WaitGroup
		var mu sync.Mutex
		answered := 0
		for range 4 {
			visitors.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					conn, err := net.Dial("tcp", ln.Addr().String())
					if err != nil {
						t.Error(err)
						return
					}
					conn.SetDeadline(time.Now().Add(testkit.Patience))
					resp, err := tryAsk(conn, "GET /link HTTP/1.1\r\nHost: a\r\n"+end)
					conn.Close()
					if err != nil || resp.StatusCode() != 302 {
						t.Errorf("a visitor was answered %v, error %v", resp, err)
						return
					}
					mu.Lock()
					answered++
					mu.Unlock()
				}
			})
		}
		for range 20 {
			s := start(t, loops, func(s *site) { s.ln = inherit(t, socket) })
			time.Sleep(20 * time.Millisecond)
			s.stop()
		}
		last := start(t, loops, func(s *site) { s.ln = inherit(t, socket) })
		close(done)
		visitors.Wait()
		last.stop()
		if answered == 0 {
			t.Error("nobody was answered")
		}
	}
}

func TestStandbyHandsOver(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		port, err := service.Sockets(nil).ListenStandby("", "127.0.0.1:0", "text/plain", "soon\n",
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		waiting := &site{addr: port.Addr().String()}
		if resp := ask(t, waiting.dial(t), get("/link")); resp.StatusCode() != 503 {
			t.Errorf("before: answered %d", resp.StatusCode())
		}
		s := start(t, loops, func(s *site) { s.ln = port })
		testkit.Succeeds(t, func() error {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(testkit.Patience))
			resp, err := tryAsk(conn, get("/link"))
			if err == nil && resp.StatusCode() != 302 {
				err = fmt.Errorf("answered %d", resp.StatusCode())
			}
			return err
		})
		if s.tried.Load() == 0 && loops > 0 {
			t.Error("the loops do not serve the listener")
		}
	})
}

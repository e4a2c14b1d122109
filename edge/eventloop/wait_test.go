package eventloop_test

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"linkstream/edge/eventloop"
	"linkstream/schema/testkit"
)

// sendAwait sends a request that waits, and returns its waiter.
func (s *site) sendAwait(t *testing.T, conn net.Conn, more string) *eventloop.Waiter {
	t.Helper()
	_, err := io.WriteString(conn, get("/await")+more)
	testkit.Must(t, err)
	return <-s.awaiting
}

func wantStatuses(t *testing.T, conn net.Conn, statuses ...int) {
	t.Helper()
	for i, want := range statuses {
		if resp, err := readAnswer(conn); err != nil || resp.StatusCode() != want {
			t.Fatalf("answer %d: %v, error %v, want %d", i+1, resp, err, want)
		}
	}
}

func TestRequestWaitsOnItsLoop(t *testing.T) {
	t.Parallel()
	t.Run("while others are answered, and without a goroutine", func(t *testing.T) {
		s := start(t, 1, nil)
		conn, other := s.dial(t), s.dial(t)
		waiter := s.sendAwait(t, conn, get("/link"))
		for range 3 {
			testkit.Equal(t, "status", ask(t, other, get("/link")).StatusCode(), 302)
		}
		_, err := io.WriteString(conn, get("/page")) // is left until the request before it is answered
		testkit.Must(t, err)
		testkit.Equal(t, "tried", s.tried.Load(), 3)
		waiter.Done()
		wantStatuses(t, conn, 200, 302, 404)
		testkit.Equal(t, "status", ask(t, conn, get("/link")).StatusCode(), 302)
		testkit.Equal(t, "handed over", s.metric(t, metricHanded), 0)
	})
	t.Run("as one of many, each of which gets its own answer", func(t *testing.T) {
		s := start(t, 2, nil)
		const conns = 50
		var waiting []*eventloop.Waiter
		var all []net.Conn
		for range conns {
			conn := s.dial(t)
			waiting, all = append(waiting, s.sendAwait(t, conn, "")), append(all, conn)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, i := range rand.Perm(conns) {
				waiting[i].Done()
			}
		}()
		for _, conn := range all {
			wantStatuses(t, conn, 200)
			testkit.Equal(t, "status", ask(t, conn, get("/soon")).StatusCode(), 302)
		}
		<-done
		testkit.Equal(t, "handed over", s.metric(t, metricHanded), 0)
	})
	t.Run("longer than a connection may be idle", func(t *testing.T) {
		s := start(t, 1, func(s *site) { s.cfg.ReadTimeout, s.cfg.IdleTimeout = short, short })
		conn := s.dial(t)
		waiter := s.sendAwait(t, conn, "")
		time.Sleep(2 * short)
		waiter.Done()
		wantStatuses(t, conn, 200)
	})
	t.Run("and is left to a goroutine if it cannot be answered then", func(t *testing.T) {
		s := start(t, 1, nil)
		testkit.Equal(t, "status", ask(t, s.dial(t), get("/never")).StatusCode(), 200)
		testkit.Equal(t, "handed over", s.metric(t, metricHanded), 1)
	})
	t.Run("and is forgotten if the client does not take the answer before it", func(t *testing.T) {
		s := start(t, 1, nil)
		conn := s.dial(t)
		testkit.Must(t, conn.SetReadBuffer(64<<10))
		const large = 60 // more than the kernel has room for
		_, err := io.WriteString(conn, strings.Repeat(get("/large"), large/2))
		testkit.Must(t, err)
		time.Sleep(pieceGap)
		last := "GET /page HTTP/1.1\r\nHost: a\r\n" + end
		_, err = io.WriteString(conn, strings.Repeat(get("/large"), large/2)+get("/soon")+last)
		testkit.Must(t, err)
		testkit.Eventually(t, "the kernel has no room for an answer", func() bool { return s.metric(t, metricHanded) > 0 })
		wantEnd(t, conn, strings.Repeat("200 ", large)+"302 404")
	})
}

func TestWaitingConnectionEnds(t *testing.T) {
	t.Parallel()
	t.Run("when the client goes away", func(t *testing.T) {
		s := start(t, 1, nil)
		conn := s.dial(t)
		waiter := s.sendAwait(t, conn, "")
		testkit.Must(t, conn.SetLinger(0))
		testkit.Must(t, conn.Close())
		testkit.Equal(t, "status", ask(t, s.dial(t), get("/link")).StatusCode(), 302)
		waiter.Done()
		testkit.Eventually(t, "the connection is closed", func() bool { return s.metric(t, metricOpen) == 1 })
	})
	t.Run("with its answer when the server stops", func(t *testing.T) {
		s := start(t, 2, nil)
		conn := s.dial(t)
		waiter := s.sendAwait(t, conn, get("/link"))
		stopped := make(chan struct{})
		go func() { s.stop(); close(stopped) }()
		awaitClosed(t, s.addr)
		waiter.Done()
		if resp, err := readAnswer(conn); err != nil || resp.StatusCode() != 200 || !resp.ConnectionClose() {
			t.Errorf("answered %v, error %v", resp, err)
		}
		wantEnd(t, conn, "")
		<-stopped
	})
	t.Run("without an answer when the server has waited for long enough", func(t *testing.T) {
		s := start(t, 2, func(s *site) { s.grace = short })
		conn := s.dial(t)
		waiter := s.sendAwait(t, conn, "")
		s.stop()
		wantEnd(t, conn, "")
		waiter.Done() // has no effect
		testkit.Equal(t, "connections", s.metric(t, metricOpen), 0)
	})
}

// awaitClosed waits until nobody listens at an address.
func awaitClosed(t *testing.T, addr string) {
	t.Helper()
	testkit.Eventually(t, "the listener is closed", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

package eventloop_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// The loops have a descriptor of their own: an open listener would have Go's poller wake up with every connection.
func TestLoopsTakeTheListenerFromGo(t *testing.T) {
	s := start(t, 1, nil)
	for range 2 {
		if resp := ask(t, s.dial(t), get("/link")); resp.StatusCode() != 302 {
			t.Errorf("answered %d", resp.StatusCode())
		}
		if err := s.ln.(*net.TCPListener).SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener is open for Go, error %v", err)
		}
	}
}

func TestGoroutinesServeOtherListeners(t *testing.T) {
	s := start(t, 1, func(s *site) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Must(t, err)
		s.ln = struct{ net.Listener }{ln}
	})
	testkit.Equal(t, "status", ask(t, s.dial(t), get("/link")).StatusCode(), 302)
	testkit.Equal(t, "answers of loops", s.tried.Load(), 0)
}

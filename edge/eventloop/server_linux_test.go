package eventloop_test

import (
	"errors"
	"net"
	"testing"
	"time"
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

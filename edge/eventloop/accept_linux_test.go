package eventloop_test

import (
	"fmt"
	"io"
	"sync"
	"testing"

	"linkstream/schema/testkit"
)

// A loop that is stuck, in a page fault of a slow disk for example, delays its own connections only.
func TestNewConnectionsDoNotWaitForStuckLoops(t *testing.T) {
	s := start(t, 3, nil)
	release := sync.OnceFunc(func() { close(s.gate) })
	defer release() // the server cannot stop before
	for held := range int64(2) {
		conn := s.dial(t)
		_, err := io.WriteString(conn, get("/hold"))
		testkit.Must(t, err)
		testkit.Eventually(t, "another loop is held", func() bool { return s.waiting.Load() == held+1 })
		for range 10 {
			status := ask(t, s.dial(t), get("/link")).StatusCode()
			testkit.Equal(t, fmt.Sprintf("status while %d loops are held", held+1), status, 302)
		}
		defer func() {
			release()
			wantStatuses(t, conn, 302)
		}()
	}
}

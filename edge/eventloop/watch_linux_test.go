package eventloop_test

import (
	"io"
	"sync"
	"testing"

	"linkstream/schema/testkit"
)

// A loop that is stuck keeps its connections waiting, but no new ones while there is another loop.
func TestNewConnectionsDoNotWaitForStuckLoops(t *testing.T) {
	s := start(t, 3, nil)
	release := sync.OnceFunc(func() { close(s.gate) })
	defer release() // the server cannot stop before
	for held := range int64(2) {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, get("/hold")); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "another loop is held", func() bool { return s.waiting.Load() == held+1 })
		if resp := ask(t, s.dial(t), get("/link")); resp.StatusCode() != 302 {
			t.Errorf("while %d loops are held: answered %d", held+1, resp.StatusCode())
		}
		defer func() {
			release()
			if resp, err := readAnswer(conn); err != nil || resp.StatusCode() != 302 {
				t.Errorf("then: answered %v, error %v", resp, err)
			}
		}()
	}
	testkit.Equal(t, "rescues", s.metric(t, metricStuck), 2)
	if want := "event loops are stuck"; !s.log.Contains(want) {
		t.Errorf("%q is not in %s", want, s.log.String())
	}
	release()
}

// A loop that does not accept any more gives the connections that are in use to those that do.
func TestLoopsThatLeaveGiveConnectionsAway(t *testing.T) {
	s := start(t, 2, nil)
	held := s.dial(t)
	release := sync.OnceFunc(func() { close(s.gate) })
	defer release()
	if _, err := io.WriteString(held, get("/hold")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "loop 0 is held", func() bool { return s.waiting.Load() == 1 })
	conn := s.dial(t)
	testkit.Equal(t, "loop that accepts", string(ask(t, conn, get("/work")).Body()), "1")
	release()
	if resp, err := readAnswer(held); err != nil || resp.StatusCode() != 302 {
		t.Errorf("answered %v, error %v", resp, err)
	}
	testkit.Eventually(t, "loop 0 has the connection", func() bool {
		ask(t, held, get("/link")) // loop 0 decides when it has something to do
		return string(ask(t, conn, get("/work")).Body()) == "0"
	})
}

package eventloop_test

import (
	"io"
	"testing"

	"linkstream/schema/testkit"
)

// A loop that is stuck keeps its connections waiting, but no new ones while there is another loop.
func TestNewConnectionsDoNotWaitForStuckLoops(t *testing.T) {
	s := start(t, 3, nil)
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
			if resp, err := readAnswer(conn); err != nil || resp.StatusCode() != 302 {
				t.Errorf("then: answered %v, error %v", resp, err)
			}
		}()
	}
	testkit.Equal(t, "rescues", s.metric(t, metricStuck), 2)
	if want := "event loops are stuck"; !s.log.Contains(want) {
		t.Errorf("%q is not in %s", want, s.log.String())
	}
	close(s.gate)
}

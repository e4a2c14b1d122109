package eventloop_test

import (
	"testing"
	"time"

	"linkstream/edge/eventloop"
	"linkstream/schema/testkit"
)

func TestLoopsJoinIfACPUIsIdle(t *testing.T) {
	const begin = time.Hour
	for _, c := range []struct {
		name  string
		idle  time.Duration // of all CPUs, in the time
		busy  bool          // the loops, all the time
		after time.Duration
		want  bool
	}{
		{"a CPU is idle while the loops are busy", eventloop.IdleWindow, true, eventloop.IdleWindow, true},
		{"half of one is", eventloop.IdleWindow / 2, true, eventloop.IdleWindow, true},
		{"less is", eventloop.IdleWindow / 3, true, eventloop.IdleWindow, false},
		{"one is, for a moment", eventloop.IdleWindow, true, eventloop.IdleWindow / 2, false},
		{"one is, but the loops were not busy in between", eventloop.IdleWindow, false, eventloop.IdleWindow, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s eventloop.Spare
			testkit.Equal(t, "found at once", s.Found(begin, true, 2*begin), false)
			if !c.busy {
				testkit.Equal(t, "found without need", s.Found(begin+c.after/2, false, 3*begin), false)
			}
			testkit.Equal(t, "found", s.Found(begin+c.after, true, 2*begin+c.idle), c.want)
		})
	}
	t.Run("the system tells how long CPUs were idle", func(t *testing.T) {
		first := eventloop.IdleCPUs()
		time.Sleep(50 * time.Millisecond)
		if second := eventloop.IdleCPUs(); first <= 0 || second < first || second > first+time.Hour {
			t.Errorf("%v, then %v", first, second)
		}
	})
}

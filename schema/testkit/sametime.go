package testkit

import (
	"testing"
	"time"
)

// Turns of SameTime. The fastest of many turns is the time of the call itself: other work of the machine only adds to a
// turn.
const (
	fewestTurns = 5
	mostTurns   = 200
)

// SameTime requires that neither a nor b takes more than three times as long as the other. They are called in turns,
// and the fastest of each are compared, so that a busy machine delays the answer instead of falsifying it.
func SameTime(tb testing.TB, a, b func()) {
	tb.Helper()
	fastestA, fastestB := time.Duration(1<<63-1), time.Duration(1<<63-1)
	for turn := range mostTurns {
		fastestA, fastestB = min(fastestA, timeOf(a)), min(fastestB, timeOf(b))
		if turn+1 >= fewestTurns && fastestA <= 3*fastestB && fastestB <= 3*fastestA {
			return
		}
	}
	tb.Errorf("one takes %v, the other %v", fastestA, fastestB)
}

func timeOf(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

package testkit

import (
	"errors"
	"testing"
	"time"
)

// Patience is how long a test waits for an event that must happen, but has no promised duration: far longer than
// anything takes, also where twenty programs share a CPU. Only tests that fail wait as long.
const Patience = 2 * time.Minute

// Pauses between two looks at a state grow from minPause to maxPause: short waits end at once, long ones take little
// CPU from the work that they wait for.
const (
	minPause = time.Millisecond
	maxPause = 20 * time.Millisecond
)

// Eventually waits until condition holds, and fails the test if it does not within Patience.
func Eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	SucceedsWithin(tb, Patience, func() error {
		if condition() {
			return nil
		}
		return errors.New(what)
	})
}

// Succeeds waits until check returns nil, and fails the test with the last error if it does not within Patience.
func Succeeds(tb testing.TB, check func() error) {
	tb.Helper()
	SucceedsWithin(tb, Patience, check)
}

// SucceedsWithin is Succeeds with another patience than Patience. Use Takes and Follows for promised durations.
func SucceedsWithin(tb testing.TB, d time.Duration, check func() error) {
	tb.Helper()
	if err := Poll(d, check); err != nil {
		tb.Fatalf("still not after %v: %v", d, err)
	}
}

// Poll calls check until it returns nil, and returns its last error if it does not within d. It serves processes that
// a test starts, which have no testing.TB.
func Poll(d time.Duration, check func() error) error {
	pause := minPause
	for deadline := time.Now().Add(d); ; {
		if err := check(); err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
		pause = min(2*pause, maxPause)
	}
}

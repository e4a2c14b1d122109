package testkit

import (
	"testing"
	"time"
)

// LeaveTime returns when the current period of the clock, such as the minute or the UTC day, has enough time left. It is for tests
// of what begins anew with each period, where the tested code reads the clock itself.
func LeaveTime(tb testing.TB, period, enough time.Duration) {
	tb.Helper()
	now := time.Now()
	if left := now.Truncate(period).Add(period).Sub(now); left < enough {
		tb.Logf("waiting %v for the next %v to begin", left, period)
		<-time.After(left)
	}
}

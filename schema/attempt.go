package schema

import (
	"context"
	"time"
)

// Attempts is a number of attempts, such as sign-ins, under one key in one time window.
type Attempts struct {
	Key    [32]byte
	Window time.Time // when the window begins
	N      int64
}

// AttemptStore counts attempts for all api nodes together.
type AttemptStore interface {
	// CountAttempts counts attempts, all or none of them, and returns the totals of their windows so far, in the same
	// order. Each pair of key and window may occur once. Of concurrent calls that count in the same window, each returns
	// another total. The store deletes windows that began more than an hour before the latest one given, a few more with
	// each call than the call may add, so that it does not grow with the number of keys ever tried.
	CountAttempts(ctx context.Context, attempts []Attempts) (totals []int64, err error)
}

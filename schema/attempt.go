package schema

import (
	"context"
	"time"
)

// AttemptStore counts attempts to sign in or up, for all api nodes together.
type AttemptStore interface {
	// CountAttempt counts an attempt under key in the window of time that begins at window, and returns how many there
	// are with it. What is an hour older than window may be forgotten, and is: the store does not grow with the keys that
	// were ever tried.
	CountAttempt(ctx context.Context, key [32]byte, window time.Time) (attempts int64, err error)
}

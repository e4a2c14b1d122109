package schema

import (
	"context"
	"time"
)

// AttemptStore counts attempts, such as sign-ins, for all api nodes together.
type AttemptStore interface {
	// CountAttempt counts an attempt under key in the time window that begins at window, and returns the number of
	// attempts in it so far. The store deletes windows that began more than an hour before, so that it does not grow
	// with the number of keys ever tried.
	CountAttempt(ctx context.Context, key [32]byte, window time.Time) (attempts int64, err error)
}

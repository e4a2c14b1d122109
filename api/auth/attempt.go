package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"time"

	"linkstream/schema"
)

// Limit is how often something may be attempted.
type Limit struct {
	Purpose   string // what is attempted, and by what it is counted
	PerMinute int64
	PerHour   int64
}

// Attempts bounds attempts to guess, for all nodes that share a store together. Its methods may be called concurrently.
type Attempts struct{ store schema.AttemptStore }

// NewAttempts returns the Attempts of a store.
func NewAttempts(store schema.AttemptStore) *Attempts { return &Attempts{store} }

// Allow counts an attempt of subject and returns 0, or, where there have been too many, when to try again, in whole
// seconds. What is refused counts, too: who keeps trying keeps waiting until the window ends.
func (a *Attempts) Allow(ctx context.Context, limit Limit, subject string) (wait time.Duration, err error) {
	now := time.Now()
	for _, window := range []struct {
		length time.Duration
		limit  int64
	}{{time.Minute, limit.PerMinute}, {time.Hour, limit.PerHour}} {
		begin := now.Truncate(window.length)
		key := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", limit.Purpose, window.length, subject))
		attempts, err := a.store.CountAttempt(ctx, key, begin.UTC())
		if err != nil {
			return 0, fmt.Errorf("count attempt: %w", err)
		}
		if attempts > window.limit {
			left := begin.Add(window.length).Sub(now)
			wait = max(wait, (left + time.Second - 1).Truncate(time.Second))
		}
	}
	return wait, nil
}

// Network returns by what attempts from an address are counted: itself or, as whoever has one IPv6 address has 2^64 of
// them, its /64.
func Network(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		prefix, _ := addr.Prefix(64) // which every IPv6 address has
		return prefix.String()
	}
	return addr.String()
}

package ratelimit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"time"

	"linkstream/schema"
)

// AttemptLimit says how often a subject may attempt something.
type AttemptLimit struct {
	Purpose   string // what is attempted and what kind of subject it is counted by; part of the key in the store
	PerMinute int64
	PerHour   int64
}

// AttemptLimiter limits attempts such as sign-ins. All processes that share the store share the counts. The methods may
// be called concurrently.
type AttemptLimiter struct{ store schema.AttemptStore }

// NewAttemptLimiter returns a limiter that counts in store.
func NewAttemptLimiter(store schema.AttemptStore) *AttemptLimiter { return &AttemptLimiter{store} }

// Allow counts an attempt by subject. It returns 0 if the attempt is within the limit, else the time until the window
// ends, in whole seconds. Refused attempts count too, so a client that keeps trying stays refused until the window ends.
func (a *AttemptLimiter) Allow(ctx context.Context, limit AttemptLimit, subject string) (wait time.Duration, err error) {
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
			wait = max(wait, ceilSeconds(begin.Add(window.length).Sub(now)))
		}
	}
	return wait, nil
}

// Network returns the subject that attempts from addr are counted by: an IPv4 address itself, and the /64 of an IPv6
// address, because whoever has one such address has 2^64 of them.
func Network(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		prefix, _ := addr.Prefix(64) // fails only for fewer than 64 bits
		return prefix.String()
	}
	return addr.String()
}

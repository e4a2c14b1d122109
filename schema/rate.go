package schema

import (
	"context"
	"time"
)

// RateSkew is by how much the clocks of api nodes may differ for a token's limit to hold across them.
const RateSkew = 10 * time.Minute

// RateStore shares the requests that a token may make in a window out among the api nodes, one lease at a time.
type RateStore interface {
	// LeaseRequests grants the caller a part of the limit requests that the token may make in the window that begins at
	// window, and says how many are left to be granted: Lease says how many that is. What one call is granted no other
	// one is, so the grants of a window never exceed limit, and they add up to it once left is 0; callers name the same
	// limit. Nothing is granted, and nothing is left, if all was granted before, or if a later window of the token has
	// begun, as it has for a node whose clock is ahead. But a window that is later by more than RateSkew comes from a
	// clock that was wrong, and gives way to this one. The token exists. With an error a part may be lost that nobody is
	// granted.
	LeaseRequests(ctx context.Context, tokenID int64, window time.Time, limit int) (granted, left int, err error)
}

// A lease is an eighth of what is left of its window, at most 40 requests and at least one: the nodes ask 81 times for
// 2000 requests, and one that has no use for its lease takes at most a fiftieth of them away, less and less towards
// the end.
const (
	leasePart = 8
	leaseMax  = 40
)

// Lease returns how many requests the nth lease of a window grants, counted from 1, and how many it leaves. The nth
// lease depends on the earlier ones alone, so a store need only count them.
func Lease(limit int, n int64) (granted, left int) {
	for left = limit; n > 0; n-- {
		granted = min(left, max(1, min(left/leasePart, leaseMax)))
		left -= granted
		if granted == 0 {
			break
		}
	}
	return granted, left
}

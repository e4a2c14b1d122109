package schema

import (
	"context"
	"time"
)

// RateSkew is the maximum difference between the clocks of api nodes for which the limit of a token holds.
const RateSkew = 10 * time.Minute

// RateStore divides the requests that a token may make in a time window among the api nodes, as leases.
type RateStore interface {
	// LeaseRequests grants the caller a part of the limit requests of the token in the window that begins at window,
	// and returns how many are left for later calls; Lease computes both. The grants of a window never exceed limit,
	// and they add up to it once left is 0. All callers pass the same limit, for a token that exists.
	//
	// It grants nothing, with nothing left, if everything has been granted, or if a later window of the token has begun
	// on a node whose clock is ahead. But a window that is later by more than RateSkew comes from a wrong clock and is
	// replaced. After an error a part may be lost: no caller gets it.
	LeaseRequests(ctx context.Context, tokenID int64, window time.Time, limit int) (granted, left int, err error)
}

// A lease is an eighth of the rest of the window, at least 1 and at most 40 requests: 2000 requests are 81 leases, and
// a node that does not use its lease wastes at most 2% of the limit, less towards the end of the window.
const (
	leasePart = 8
	leaseMax  = 40
)

// Lease returns how many requests the nth lease of a window grants, counting from 1, and how many are left after it.
// Leases depend only on their number, so a store only needs to count them.
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

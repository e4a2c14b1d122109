// Package ratelimit limits how often something may be done: API requests by each token, and attempts such as sign-ins
// by each address or account. Limits hold for all processes that share a store.
package ratelimit

import (
	"context"
	"sync"
	"time"

	"linkstream/schema"
)

// leaseTimeout bounds one call to the store.
const leaseTimeout = 5 * time.Second

// A token may make RequestLimit requests per Window. Windows begin at full minutes.
const (
	RequestLimit = 2000
	Window       = time.Minute
)

// Quota is the state of a token's window after a request.
type Quota struct {
	Limit int
	// Remaining is what this process has leased plus what the store had left when this process last asked. It is exact
	// while one process serves the token, and lags behind the leases of other processes otherwise.
	Remaining int
	OK        bool // the request is within the limit
	// RetryAfter is the time until the window ends, in whole seconds, at least one. Set if OK is false.
	RetryAfter time.Duration
}

// RequestLimiter limits the requests of each token. Together, all processes that share a store let exactly RequestLimit
// requests through per window: each process leases a part of the window from the store, and the next part when it has
// used that. A lease that is not used up, because the process stops or sees no more requests, is lost: fewer requests
// may pass, never more.
//
// Each process uses its own clock; clocks may differ by up to schema.RateSkew. The first process to begin a window ends
// the earlier one for all: the others use up their leases and then refuse until their own minute turns.
//
// The methods may be called concurrently.
type RequestLimiter struct {
	store schema.RateStore

	mu     sync.Mutex
	begin  time.Time        // of the current window
	shares map[int64]*share // of the current window, by token ID
}

// share is this process's share of a token's window.
type share struct {
	own   int    // leased requests that are not used yet
	left  int    // what the store could still grant when it was last asked
	lease *lease // the call to the store that is under way; nil if there is none
}

// lease is one call to the store. Every request of the token that arrives meanwhile waits for it.
type lease struct {
	tokenID int64
	window  time.Time
	share   *share
	done    chan struct{} // closed after the share has grown or err is set
	err     error
}

// NewRequestLimiter returns a limiter without leases.
func NewRequestLimiter(store schema.RateStore) *RequestLimiter { return &RequestLimiter{store: store} }

// Allow counts a request by a token. Requests over the limit are not counted. If the store has to be asked and does not
// answer, Allow returns CodeUnavailable and a Quota with Remaining 0.
func (l *RequestLimiter) Allow(ctx context.Context, tokenID int64) (Quota, error) {
	return l.AllowMany(ctx, tokenID, 1)
}

// AllowMany is Allow for n requests: either all are within the limit and counted, or none.
func (l *RequestLimiter) AllowMany(ctx context.Context, tokenID int64, n int) (Quota, error) {
	for {
		quota, lease, first := l.take(tokenID, n)
		if lease == nil {
			return quota, nil
		}
		if first {
			l.ask(ctx, lease)
		}
		if err := lease.wait(ctx); err != nil {
			return quota, schema.Errorf(schema.CodeUnavailable, "check rate limit: %w", err)
		}
	}
}

// Return takes back a request that was counted after the time since, unless its window has ended.
func (l *RequestLimiter) Return(tokenID int64, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.shares[tokenID]; s != nil && since.Truncate(Window).Equal(l.begin) {
		s.own++
	}
}

// take counts n requests if no call to the store is needed. Otherwise it returns the lease to wait for; first tells the
// caller to make the call.
func (l *RequestLimiter) take(tokenID int64, n int) (quota Quota, next *lease, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Read the clock under the lock: a time read before it could reopen a window that has ended.
	now := time.Now()
	if begin := now.Truncate(Window); !begin.Equal(l.begin) {
		l.begin, l.shares = begin, map[int64]*share{}
	}
	s := l.shares[tokenID]
	if s == nil {
		s = &share{left: RequestLimit}
		l.shares[tokenID] = s
	}
	quota.Limit = RequestLimit
	switch {
	case s.own >= n:
		s.own -= n
		quota.OK, quota.Remaining = true, s.own+s.left
	case s.own+s.left < n:
		quota.Remaining = s.own + s.left
		quota.RetryAfter = ceilSeconds(l.begin.Add(Window).Sub(now))
	case s.lease == nil:
		s.lease = &lease{tokenID: tokenID, window: l.begin, share: s, done: make(chan struct{})}
		return quota, s.lease, true
	default:
		return quota, s.lease, false
	}
	return quota, nil, false
}

// ask gets a lease from the store. If the window ends before the answer arrives, its share is not in l.shares, and
// the requests that wait ask again for the new window.
func (l *RequestLimiter) ask(ctx context.Context, next *lease) {
	// Other requests wait for this call too, so it must not end with the request that makes it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	granted, left, err := l.store.LeaseRequests(ctx, next.tokenID, next.window, RequestLimit)
	l.mu.Lock()
	if err == nil {
		next.share.own += granted
		next.share.left = left
	}
	next.share.lease = nil
	l.mu.Unlock()
	next.err = err
	close(next.done)
}

func (l *lease) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ceilSeconds rounds up, so that a client that waits that long does not come too early.
func ceilSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

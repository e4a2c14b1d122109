package ratelimit

import (
	"context"
	"sync"
	"time"

	"linkstream/schema"
)

// leaseTimeout bounds a question to the store.
const leaseTimeout = 5 * time.Second

// A token may make RateLimit requests in each RateWindow. Windows begin at full minutes.
const (
	RateLimit  = 2000
	RateWindow = time.Minute
)

// Quota is what is left of a token's window.
type Quota struct {
	Limit int
	// Remaining counts what the node may let through without asking the store, and what the store had left when the node
	// last asked. So it is exact where a node is alone, and lags behind what the others have leased where it is not.
	Remaining int
	OK        bool // the request is within the limit
	// RetryAfter is when the window ends, in whole seconds, at least one; set if OK is false.
	RetryAfter time.Duration
}

// Limiter counts the requests of each token. All nodes that share a store together let RateLimit of them through in a
// window: each leases a part of the window from the store, and another part when it has used that up. A node that has
// no more requests, or is killed, keeps what it had leased, so fewer may get through, but never more.
//
// Windows go by the nodes' own clocks, which may differ by up to schema.RateSkew. The first node to begin a window ends
// the earlier one for all: those that are behind use up what they have leased, and then refuse until their minute turns.
//
// The methods may be called concurrently.
type Limiter struct {
	store schema.RateStore

	mu     sync.Mutex
	begin  time.Time        // of the window
	shares map[int64]*share // of the window, by token
}

// share is this node's share of a token's window.
type share struct {
	own   int    // requests that are leased and not made yet
	left  int    // requests that the store could still grant when it was last asked
	lease *lease // the next one; nil while none is being asked for
}

// lease is one question to the store, for which all requests of a token wait that come in the meantime.
type lease struct {
	tokenID int64
	window  time.Time
	share   *share
	done    chan struct{} // closed once the share has grown, or err is set
	err     error
}

// NewLimiter returns a Limiter that has leased nothing.
func NewLimiter(store schema.RateStore) *Limiter { return &Limiter{store: store} }

// Allow counts a request of a token. What is over the limit is not counted. CodeUnavailable, with a Quota that has no
// requests remaining, if the store has to be asked and does not answer.
func (l *Limiter) Allow(ctx context.Context, tokenID int64) (Quota, error) {
	for {
		quota, lease, first := l.take(tokenID)
		if lease == nil {
			return quota, nil
		}
		if first {
			l.ask(ctx, lease)
		}
		if err := lease.wait(ctx); err != nil {
			return quota, &schema.Error{Code: schema.CodeUnavailable, Message: "The rate limit cannot be checked now.", Err: err}
		}
	}
}

// take counts a request if that needs no question to the store. Else it returns the lease to wait for, and whether the
// caller is the first to do so and asks.
func (l *Limiter) take(tokenID int64) (quota Quota, next *lease, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The clock is read in here, or one who read it before a window's end could put that window back after its end.
	now := time.Now()
	if begin := now.Truncate(RateWindow); !begin.Equal(l.begin) {
		l.begin, l.shares = begin, map[int64]*share{}
	}
	s := l.shares[tokenID]
	if s == nil {
		s = &share{left: RateLimit}
		l.shares[tokenID] = s
	}
	quota.Limit = RateLimit
	switch {
	case s.own > 0:
		s.own--
		quota.OK, quota.Remaining = true, s.own+s.left
	case s.left == 0:
		left := l.begin.Add(RateWindow).Sub(now)
		quota.RetryAfter = (left + time.Second - 1).Truncate(time.Second)
	case s.lease == nil:
		s.lease = &lease{tokenID: tokenID, window: l.begin, share: s, done: make(chan struct{})}
		return quota, s.lease, true
	default:
		return quota, s.lease, false
	}
	return quota, nil, false
}

// ask gets a lease from the store. If its window ends before the answer comes, nobody knows the share any more, and
// those who wait ask for one of the new window.
func (l *Limiter) ask(ctx context.Context, next *lease) {
	// Others wait, too, so the question does not end with the request that happens to ask it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	granted, left, err := l.store.LeaseRequests(ctx, next.tokenID, next.window, RateLimit)
	l.mu.Lock()
	if err == nil {
		next.share.own, next.share.left = granted, left
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

package ratelimit_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/ratelimit"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

// nodes are limiters that share a token, each on a store of its own over one file, as in processes of their own.
type nodes struct {
	token    schema.Token
	limiters []*ratelimit.Limiter
	stores   []*leasing
}

// leasing counts the questions to a store, and can delay or refuse its answers.
type leasing struct {
	*sqlite.Store
	delay    time.Duration
	err      error
	asked    atomic.Int64
	underWay atomic.Int64
	atOnce   atomic.Bool // a question was asked while another one was under way
}

func (l *leasing) LeaseRequests(ctx context.Context, tokenID int64, window time.Time, limit int) (granted, left int, err error) {
	l.asked.Add(1)
	if l.underWay.Add(1) > 1 {
		l.atOnce.Store(true)
	}
	defer l.underWay.Add(-1)
	if l.err != nil {
		return 0, 0, l.err
	}
	granted, left, err = l.Store.LeaseRequests(ctx, tokenID, window, limit)
	select {
	case <-time.After(l.delay):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	return granted, left, err
}

// onNodes runs a test with nodes whose store answers after delay.
func onNodes(t *testing.T, name string, delay time.Duration, check func(t *testing.T, n *nodes)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "links.db")
			n := &nodes{}
			for range 3 {
				store := &leasing{Store: open(t, path), delay: delay}
				n.stores = append(n.stores, store)
				n.limiters = append(n.limiters, ratelimit.NewLimiter(store))
			}
			_, n.token = addToken(t, n.stores[0].Store, "me@example.org")
			check(t, n)
		})
	})
}

// asked returns how many questions the store was asked by all nodes.
func (n *nodes) asked() (sum int64) {
	for _, s := range n.stores {
		sum += s.asked.Load()
	}
	return sum
}

// flooding is more requests than one limiter may let through, so that it uses up all that it leases.
const flooding = 2100

// flood sends requests to each limiter, all at once, and returns the answers to those that got through.
func flood(t *testing.T, tokenID int64, requests int, limiters ...*ratelimit.Limiter) (through []ratelimit.Quota) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, limiter := range limiters {
		for range requests {
			wg.Go(func() {
				if quota := allow(t, limiter, tokenID); quota.OK {
					mu.Lock()
					through = append(through, quota)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	return through
}

func TestLimiterOfSeveralNodes(t *testing.T) {
	onNodes(t, "lets exactly the limit through in each window, and asks rarely", 0, func(t *testing.T, n *nodes) {
		for range 3 {
			before := n.asked()
			if got := flood(t, n.token.ID, flooding, n.limiters...); len(got) != 2000 {
				t.Errorf("%d got through", len(got))
			}
			// 81 leases, and each node may hear once that there is none left.
			if asked := n.asked() - before; asked < 81 || asked > 84 {
				t.Errorf("asked %d times", asked)
			}
			time.Sleep(time.Minute)
		}
	})
	onNodes(t, "lets exactly the limit through over a slow store", 20*time.Millisecond, func(t *testing.T, n *nodes) {
		if got := flood(t, n.token.ID, flooding, n.limiters...); len(got) != 2000 {
			t.Errorf("%d got through", len(got))
		}
	})
	onNodes(t, "lets exactly the limit through in windows that requests never pause for", 7*time.Millisecond, steadily)
	onNodes(t, "lets exactly the limit through however uneven the requests are", 0, func(t *testing.T, n *nodes) {
		got := len(flood(t, n.token.ID, 1, n.limiters[0]))
		got += len(flood(t, n.token.ID, 100, n.limiters[1]))
		got += len(flood(t, n.token.ID, 10, n.limiters[0]))
		got += len(flood(t, n.token.ID, flooding, n.limiters[2]))
		if stranded := 2000 - got; stranded < 1 || stranded > 2*40 {
			t.Errorf("%d requests are left to the nodes that had few", stranded)
		}
		if got += len(flood(t, n.token.ID, 100, n.limiters...)); got != 2000 {
			t.Errorf("%d got through", got)
		}
	})
	onNodes(t, "loses no more than its lease with a node that dies", 0, func(t *testing.T, n *nodes) {
		got := len(flood(t, n.token.ID, 300, n.limiters[0]))
		n.limiters[0] = ratelimit.NewLimiter(n.stores[0]) // the node that takes its place knows nothing of the lease
		got += len(flood(t, n.token.ID, flooding, n.limiters...))
		if got > 2000 || got < 2000-40 {
			t.Errorf("%d got through", got)
		}
	})
	onNodes(t, "asks nothing for requests that it refuses", 0, func(t *testing.T, n *nodes) {
		flood(t, n.token.ID, flooding, n.limiters...)
		before := n.asked()
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute - 1)))
		if got := flood(t, n.token.ID, flooding, n.limiters...); len(got) != 0 || n.asked() != before {
			t.Errorf("%d got through, asked %d times", len(got), n.asked()-before)
		}
	})
	onNodes(t, "asks once at a time, whoever waits", time.Second, func(t *testing.T, n *nodes) {
		flood(t, n.token.ID, 100, n.limiters...)
		for _, s := range n.stores {
			if s.asked.Load() != 3 || s.atOnce.Load() {
				t.Errorf("asked %d times, at once: %v", s.asked.Load(), s.atOnce.Load())
			}
		}
	})
	onNodes(t, "uses no lease of a window that ended before the answer came", 2*time.Second, func(t *testing.T, n *nodes) {
		time.Sleep(time.Minute - time.Second)
		if got := flood(t, n.token.ID, 10, n.limiters[0]); len(got) != 10 || time.Now().Second() != 1+2 {
			t.Errorf("%d got through at %v", len(got), time.Now())
		}
		n.stores[0].delay = 0
		if got := flood(t, n.token.ID, flooding, n.limiters[0]); len(got) != 2000-10 {
			t.Errorf("%d more got through in the new window", len(got))
		}
	})
	onNodes(t, "waits for its minute where another node is ahead", 0, func(t *testing.T, n *nodes) {
		allow(t, n.limiters[0], n.token.ID)
		time.Sleep(58 * time.Second)
		_, _, err := n.stores[1].LeaseRequests(t.Context(), n.token.ID, time.Now().Add(2*time.Second), ratelimit.RateLimit)
		if err != nil {
			t.Fatal(err)
		}
		if got := flood(t, n.token.ID, flooding, n.limiters[0]); len(got) != 39 {
			t.Errorf("%d got through on a lease of 40 after one request", len(got))
		}
		want := ratelimit.Quota{Limit: 2000, RetryAfter: 2 * time.Second}
		if got := allow(t, n.limiters[0], n.token.ID); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		time.Sleep(2 * time.Second)
		if got := flood(t, n.token.ID, flooding, n.limiters[0]); len(got) != 2000-40 {
			t.Errorf("%d got through besides the lease of the other node", len(got))
		}
	})
}

// steadily sends each node a request every 10 ms for two and a half windows.
func steadily(t *testing.T, n *nodes) {
	began := time.Now()
	var through [3]atomic.Int64 // by window
	var wg sync.WaitGroup
	for _, limiter := range n.limiters {
		wg.Go(func() {
			for range 15_000 {
				if allow(t, limiter, n.token.ID).OK {
					through[time.Since(began)/time.Minute].Add(1)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	for i := range through {
		if got := through[i].Load(); got != 2000 {
			t.Errorf("%d got through in window %d", got, i)
		}
	}
}

func TestLimiterWithoutStore(t *testing.T) {
	unavailable := ratelimit.Quota{Limit: 2000}
	onNodes(t, "goes on while its lease lasts, is unavailable then, and recovers", 0, func(t *testing.T, n *nodes) {
		limiter := n.limiters[0]
		allow(t, limiter, n.token.ID)
		n.stores[0].err = errors.New("gone")
		for range 39 {
			allow(t, limiter, n.token.ID)
		}
		for range 3 {
			quota, err := limiter.Allow(t.Context(), n.token.ID)
			wantCode(t, err, schema.CodeUnavailable)
			if quota != unavailable {
				t.Errorf("%+v, want %+v", quota, unavailable)
			}
		}
		n.stores[0].err = nil
		if got := allow(t, limiter, n.token.ID); !got.OK || got.Remaining != 1959 {
			t.Errorf("%+v", got)
		}
	})
	onNodes(t, "is unavailable to all who wait for a store that hangs", time.Hour, func(t *testing.T, n *nodes) {
		began := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, err := n.limiters[0].Allow(t.Context(), n.token.ID)
				if schema.ErrorCode(err) != schema.CodeUnavailable {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 5*time.Second || n.asked() != 1 {
			t.Errorf("took %v and %d questions", took, n.asked())
		}
	})
	onNodes(t, "lets nobody wait longer than asked to", time.Second, func(t *testing.T, n *nodes) {
		first := make(chan struct{})
		go func() {
			allow(t, n.limiters[0], n.token.ID)
			close(first)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := n.limiters[0].Allow(ctx, n.token.ID)
		wantCode(t, err, schema.CodeUnavailable)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		<-first
	})
	onNodes(t, "asks to the end for those who wait when the first one goes away", time.Second, func(t *testing.T, n *nodes) {
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan struct{})
		go func() {
			n.limiters[0].Allow(ctx, n.token.ID)
			close(first)
		}()
		synctest.Wait()
		cancel()
		if got := allow(t, n.limiters[0], n.token.ID); !got.OK || n.asked() != 1 {
			t.Errorf("%+v after %d questions", got, n.asked())
		}
		<-first
	})
}

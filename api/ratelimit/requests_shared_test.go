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
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// cluster is several limiters that share a token. Each has a store of its own on the same file, as if it were a
// process.
type cluster struct {
	tokenID  int64
	limiters []*ratelimit.RequestLimiter
	stores   []*leaseStore
}

// leaseStore counts the calls to a store and can delay or refuse its answers.
type leaseStore struct {
	*linkstore.Store
	delay      time.Duration
	err        error
	calls      atomic.Int64
	inFlight   atomic.Int64
	overlapped atomic.Bool // a call was made while another one was in flight
}

func (s *leaseStore) LeaseRequests(
	ctx context.Context, tokenID int64, window time.Time, limit int,
) (granted, left int, err error) {
	s.calls.Add(1)
	if s.inFlight.Add(1) > 1 {
		s.overlapped.Store(true)
	}
	defer s.inFlight.Add(-1)
	if s.err != nil {
		return 0, 0, s.err
	}
	granted, left, err = s.Store.LeaseRequests(ctx, tokenID, window, limit)
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	return granted, left, err
}

// onCluster runs a test with three limiters whose store answers after delay.
func onCluster(t *testing.T, name string, delay time.Duration, check func(t *testing.T, c *cluster)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "links.db")
			c := &cluster{}
			for range 3 {
				store := &leaseStore{Store: sqlitetest.At(t, path), delay: delay}
				c.stores = append(c.stores, store)
				c.limiters = append(c.limiters, ratelimit.NewRequestLimiter(store))
			}
			c.tokenID = addToken(t, c.stores[0].Store)
			check(t, c)
		})
	})
}

// calls returns the number of calls to the store by all limiters.
func (c *cluster) calls() (sum int64) {
	for _, s := range c.stores {
		sum += s.calls.Load()
	}
	return sum
}

// floodRequests is more than one limiter may let through, so that it uses up all its leases.
const floodRequests = 2100

// flood sends floodRequests concurrent requests to each limiter and returns the quotas of the requests that passed.
func flood(
	t *testing.T, tokenID int64, requests int, limiters ...*ratelimit.RequestLimiter,
) (passed []ratelimit.Quota) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, limiter := range limiters {
		for range requests {
			wg.Go(func() {
				if quota := allow(t, limiter, tokenID); quota.OK {
					mu.Lock()
					passed = append(passed, quota)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	return passed
}

func TestSharedRequestLimit(t *testing.T) {
	onCluster(t, "lets exactly the limit through per window, with few calls to the store", 0,
		func(t *testing.T, c *cluster) {
			for range 3 {
				before := c.calls()
				if got := flood(t, c.tokenID, floodRequests, c.limiters...); len(got) != 2000 {
					t.Errorf("%d requests passed", len(got))
				}
				// 81 calls grant leases, and each limiter may get one answer without a lease.
				if calls := c.calls() - before; calls < 81 || calls > 84 {
					t.Errorf("%d calls to the store", calls)
				}
				time.Sleep(time.Minute)
			}
		})
	onCluster(t, "lets exactly the limit through on a slow store", 20*time.Millisecond, func(t *testing.T, c *cluster) {
		if got := flood(t, c.tokenID, floodRequests, c.limiters...); len(got) != 2000 {
			t.Errorf("%d requests passed", len(got))
		}
	})
	onCluster(t, "lets exactly the limit through per window of continuous requests", 7*time.Millisecond, sendContinuously)
	onCluster(t, "lets exactly the limit through however uneven the load is", 0, func(t *testing.T, c *cluster) {
		got := len(flood(t, c.tokenID, 1, c.limiters[0]))
		got += len(flood(t, c.tokenID, 100, c.limiters[1]))
		got += len(flood(t, c.tokenID, 10, c.limiters[0]))
		got += len(flood(t, c.tokenID, floodRequests, c.limiters[2]))
		if unused := 2000 - got; unused < 1 || unused > 2*40 {
			t.Errorf("%d requests are still leased by the limiters with little load", unused)
		}
		if got += len(flood(t, c.tokenID, 100, c.limiters...)); got != 2000 {
			t.Errorf("%d requests passed", got)
		}
	})
	onCluster(t, "loses at most one lease with a process that is killed", 0, func(t *testing.T, c *cluster) {
		got := len(flood(t, c.tokenID, 300, c.limiters[0]))
		c.limiters[0] = ratelimit.NewRequestLimiter(c.stores[0]) // the new process does not have the lease
		got += len(flood(t, c.tokenID, floodRequests, c.limiters...))
		if got > 2000 || got < 2000-40 {
			t.Errorf("%d requests passed", got)
		}
	})
	onCluster(t, "refuses requests without calls to the store", 0, func(t *testing.T, c *cluster) {
		flood(t, c.tokenID, floodRequests, c.limiters...)
		before := c.calls()
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute - 1)))
		if got := flood(t, c.tokenID, floodRequests, c.limiters...); len(got) != 0 || c.calls() != before {
			t.Errorf("%d requests passed, %d calls to the store", len(got), c.calls()-before)
		}
	})
	onCluster(t, "makes one call at a time, however many requests wait", time.Second, func(t *testing.T, c *cluster) {
		flood(t, c.tokenID, 100, c.limiters...)
		for _, s := range c.stores {
			if s.calls.Load() != 3 || s.overlapped.Load() {
				t.Errorf("%d calls, overlapped: %t", s.calls.Load(), s.overlapped.Load())
			}
		}
	})
	onCluster(t, "drops a lease whose window ended before the answer arrived", 2*time.Second,
		func(t *testing.T, c *cluster) {
			time.Sleep(time.Minute - time.Second)
			if got := flood(t, c.tokenID, 10, c.limiters[0]); len(got) != 10 || time.Now().Second() != 1+2 {
				t.Errorf("%d requests passed at %v", len(got), time.Now())
			}
			c.stores[0].delay = 0
			if got := flood(t, c.tokenID, floodRequests, c.limiters[0]); len(got) != 2000-10 {
				t.Errorf("%d more requests passed in the new window", len(got))
			}
		})
	onCluster(t, "waits for its own minute when the clock of another process is ahead", 0, func(t *testing.T, c *cluster) {
		allow(t, c.limiters[0], c.tokenID)
		time.Sleep(58 * time.Second)
		_, _, err := c.stores[1].LeaseRequests(t.Context(), c.tokenID, time.Now().Add(2*time.Second), ratelimit.RequestLimit)
		testkit.Must(t, err)
		if got := flood(t, c.tokenID, floodRequests, c.limiters[0]); len(got) != 39 {
			t.Errorf("%d requests passed on the rest of a lease of 40", len(got))
		}
		want := ratelimit.Quota{Limit: 2000, RetryAfter: 2 * time.Second}
		testkit.Equal(t, "quota", allow(t, c.limiters[0], c.tokenID), want)
		time.Sleep(2 * time.Second)
		if got := flood(t, c.tokenID, floodRequests, c.limiters[0]); len(got) != 2000-40 {
			t.Errorf("%d requests passed beside the lease of the other process", len(got))
		}
	})
}

// sendContinuously sends a request to each limiter every 10 ms for two and a half windows.
func sendContinuously(t *testing.T, c *cluster) {
	began := time.Now()
	var passed [3]atomic.Int64 // by window
	var wg sync.WaitGroup
	for _, limiter := range c.limiters {
		wg.Go(func() {
			for range 15_000 {
				if allow(t, limiter, c.tokenID).OK {
					passed[time.Since(began)/time.Minute].Add(1)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	for i := range passed {
		if got := passed[i].Load(); got != 2000 {
			t.Errorf("%d requests passed in window %d", got, i)
		}
	}
}

func TestRequestLimiterWithoutStore(t *testing.T) {
	onCluster(t, "serves its lease, then fails, and recovers", 0, func(t *testing.T, c *cluster) {
		limiter := c.limiters[0]
		allow(t, limiter, c.tokenID)
		c.stores[0].err = errors.New("gone")
		for range 39 {
			allow(t, limiter, c.tokenID)
		}
		for range 3 {
			quota, err := limiter.Allow(t.Context(), c.tokenID)
			testkit.WantCode(t, err, schema.CodeUnavailable)
			testkit.Equal(t, "quota", quota, ratelimit.Quota{Limit: 2000})
		}
		c.stores[0].err = nil
		if got := allow(t, limiter, c.tokenID); !got.OK || got.Remaining != 1959 {
			t.Errorf("%+v", got)
		}
	})
	onCluster(t, "fails every waiting request after 5 seconds when the store hangs", time.Hour,
		func(t *testing.T, c *cluster) {
			began := time.Now()
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					_, err := c.limiters[0].Allow(t.Context(), c.tokenID)
					if schema.ErrorCode(err) != schema.CodeUnavailable {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if took := time.Since(began); took != 5*time.Second || c.calls() != 1 {
				t.Errorf("took %v and %d calls", took, c.calls())
			}
		})
	onCluster(t, "stops waiting when the request's context is done", time.Second, func(t *testing.T, c *cluster) {
		var first sync.WaitGroup
		first.Go(func() { allow(t, c.limiters[0], c.tokenID) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := c.limiters[0].Allow(ctx, c.tokenID)
		testkit.WantCode(t, err, schema.CodeUnavailable)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		first.Wait()
	})
	onCluster(t, "completes the call for the others when the first request is cancelled", time.Second,
		func(t *testing.T, c *cluster) {
			ctx, cancel := context.WithCancel(t.Context())
			var first sync.WaitGroup
			first.Go(func() { _, _ = c.limiters[0].Allow(ctx, c.tokenID) })
			synctest.Wait()
			cancel()
			if got := allow(t, c.limiters[0], c.tokenID); !got.OK || c.calls() != 1 {
				t.Errorf("%+v after %d calls", got, c.calls())
			}
			first.Wait()
		})
}

package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/ratelimit"
	"linkstream/schema"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

var attemptLimit = ratelimit.AttemptLimit{Purpose: "test", PerMinute: 3, PerHour: 5}

// attemptStore counts the transactions of a store. It is down while err is not nil.
type attemptStore struct {
	schema.AttemptStore
	calls atomic.Int64
	err   atomic.Pointer[error]
}

func (s *attemptStore) CountAttempts(ctx context.Context, attempts []schema.Attempts) ([]int64, error) {
	s.calls.Add(1)
	if err := s.err.Load(); err != nil {
		return nil, *err
	}
	return s.AttemptStore.CountAttempts(ctx, attempts)
}

// processes are limiters that share a database.
type processes struct {
	stores   []*attemptStore
	limiters []*ratelimit.AttemptLimiter
}

// onProcesses runs a test with three processes. In its bubble the clock starts at a full hour and advances only while
// every goroutine waits.
func onProcesses(t *testing.T, name string, test func(t *testing.T, p processes)) {
	t.Run(name, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		synctest.Test(t, func(t *testing.T) {
			var p processes
			for range 3 {
				store := &attemptStore{AttemptStore: sqlitetest.At(t, path)}
				p.stores = append(p.stores, store)
				p.limiters = append(p.limiters, ratelimit.NewAttemptLimiter(store, nil))
			}
			test(t, p)
		})
	})
}

func attempt(t *testing.T, limiter *ratelimit.AttemptLimiter, attempts ...ratelimit.Attempt) time.Duration {
	t.Helper()
	wait, err := limiter.Allow(t.Context(), attempts...)
	if err != nil {
		t.Error(err)
	}
	return wait
}

func (p processes) calls() (sum int64) {
	for _, s := range p.stores {
		sum += s.calls.Load()
	}
	return sum
}

func TestAttempts(t *testing.T) {
	onProcesses(t, "are limited per minute and per hour, over all processes", func(t *testing.T, p processes) {
		for i, step := range []struct {
			at      time.Duration
			process int
			wait    time.Duration
		}{
			{0, 0, 0}, {time.Second, 1, 0}, {2 * time.Second, 0, 0},
			{3 * time.Second, 1, 57 * time.Second},    // as the store says: the fourth that it counts
			{20*time.Second + 1, 1, 40 * time.Second}, // from memory
			{60 * time.Second, 0, 0},                  // the hour has had five attempts
			{61 * time.Second, 1, 58*time.Minute + 59*time.Second},
			{59*time.Minute + 59*time.Second, 2, time.Second},
			{time.Hour, 1, 0},
		} {
			time.Sleep(time.Until(bubbleStart.Add(step.at)))
			if wait := attempt(t, p.limiters[step.process], attemptLimit.By("me")); wait != step.wait {
				t.Errorf("attempt %d: wait %v, want %v", i, wait, step.wait)
			}
		}
	})
	onProcesses(t, "are limited by the clock that is given", func(t *testing.T, p processes) {
		now := bubbleStart
		limiter := ratelimit.NewAttemptLimiter(p.stores[0], func() time.Time { return now })
		for range 3 {
			attempt(t, limiter, attemptLimit.By("me"))
		}
		time.Sleep(time.Minute)
		testkit.Equal(t, "wait while the clock stands still", attempt(t, limiter, attemptLimit.By("me")), time.Minute)
		now = now.Add(time.Minute)
		testkit.Equal(t, "wait in the next minute", attempt(t, limiter, attemptLimit.By("me")), 0)
	})
	onProcesses(t, "are counted by subject and purpose", func(t *testing.T, p processes) {
		other := ratelimit.AttemptLimit{Purpose: "other", PerMinute: 3, PerHour: 5}
		for range 3 {
			attempt(t, p.limiters[0], attemptLimit.By("me"))
		}
		for _, limiter := range p.limiters {
			if attempt(t, limiter, attemptLimit.By("me")) == 0 {
				t.Error("a fourth attempt is allowed")
			}
			if attempt(t, limiter, attemptLimit.By("you")) != 0 || attempt(t, limiter, other.By("me")) != 0 {
				t.Error("another subject or purpose is refused")
			}
		}
	})
	onProcesses(t, "of several subjects are refused if one of them is", func(t *testing.T, p processes) {
		for i := range 3 {
			attempt(t, p.limiters[0], attemptLimit.By("address"), attemptLimit.By(fmt.Sprint("email", i)))
		}
		for _, limiter := range p.limiters[:2] {
			if attempt(t, limiter, attemptLimit.By("address"), attemptLimit.By("email")) == 0 {
				t.Error("allowed")
			}
		}
		if attempt(t, p.limiters[0], attemptLimit.By("email")) != 0 {
			t.Error("the other subject is refused on its own")
		}
	})
	onProcesses(t, "that are refused cost the store nothing more", func(t *testing.T, p processes) {
		for range 4 {
			attempt(t, p.limiters[0], attemptLimit.By("me"))
		}
		before := p.calls()
		for range 1000 {
			if wait := attempt(t, p.limiters[0], attemptLimit.By("me"), attemptLimit.By("you")); wait == 0 {
				t.Fatal("allowed")
			}
		}
		if calls := p.calls() - before; calls > 0 {
			t.Errorf("%d calls to the store", calls)
		}
		time.Sleep(time.Minute)
		if attempt(t, p.limiters[0], attemptLimit.By("me")) != 0 {
			t.Error("refused in the next minute")
		}
	})
	onProcesses(t, "that arrive together are one transaction, and exactly as many pass as may",
		func(t *testing.T, p processes) {
			limit := ratelimit.AttemptLimit{Purpose: "flood", PerMinute: 30, PerHour: 300}
			var passed atomic.Int64
			var wg sync.WaitGroup
			for i := range 600 {
				wg.Go(func() {
					if attempt(t, p.limiters[i%3], limit.By("me"), attemptLimit.By(fmt.Sprint(i))) == 0 {
						passed.Add(1)
					}
				})
			}
			wg.Wait()
			if passed.Load() != 30 {
				t.Errorf("%d passed", passed.Load())
			}
			if calls := p.calls(); calls > 6 {
				t.Errorf("%d transactions", calls)
			}
		})
	onProcesses(t, "are counted every 20 ms, however fast they come", func(t *testing.T, p processes) {
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() { attempt(t, p.limiters[0], attemptLimit.By(fmt.Sprint(i))) })
			time.Sleep(2 * time.Millisecond)
		}
		wg.Wait()
		if calls := p.calls(); calls < 50 || calls > 51 {
			t.Errorf("%d transactions in a second", calls)
		}
	})
}

// bubbleStart is when the clock of a bubble starts.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestAttemptsWithoutStore(t *testing.T) {
	onProcesses(t, "fail, and count nothing for later", func(t *testing.T, p processes) {
		down := errors.New("down")
		p.stores[0].err.Store(&down)
		for range 10 {
			if wait, err := p.limiters[0].Allow(t.Context(), attemptLimit.By("me")); !errors.Is(err, down) || wait != 0 {
				t.Errorf("wait %v, error %v", wait, err)
			}
		}
		p.stores[0].err.Store(nil)
		for i := range 4 {
			if wait := attempt(t, p.limiters[0], attemptLimit.By("me")); (wait > 0) != (i == 3) {
				t.Errorf("attempt %d: wait %v", i, wait)
			}
		}
	})
	onProcesses(t, "are refused from memory all the same", func(t *testing.T, p processes) {
		for range 4 {
			attempt(t, p.limiters[0], attemptLimit.By("me"))
		}
		down := errors.New("down")
		p.stores[0].err.Store(&down)
		if attempt(t, p.limiters[0], attemptLimit.By("me")) == 0 {
			t.Error("allowed")
		}
	})
}

// totalStore answers every attempt with the same total, and counts its calls.
type totalStore struct {
	schema.AttemptStore
	total int64
	calls atomic.Int64
}

func (s *totalStore) CountAttempts(_ context.Context, attempts []schema.Attempts) ([]int64, error) {
	s.calls.Add(1)
	return slices.Repeat([]int64{s.total}, len(attempts)), nil
}

// TestAttemptMemory has more windows than a limiter keeps, 65,536. It keeps full ones only, until they end.
func TestAttemptMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &totalStore{total: 1}
		limiter := ratelimit.NewAttemptLimiter(store, nil)
		flood := func() {
			var wg sync.WaitGroup
			for n := range 200 {
				wg.Go(func() {
					for i := range 200 {
						attempt(t, limiter, attemptLimit.By(fmt.Sprint(n, " ", i))) // in a minute and in an hour
					}
				})
			}
			wg.Wait()
		}
		calls := func(subject string) int64 {
			before := store.calls.Load()
			for range 5 {
				if attempt(t, limiter, attemptLimit.By(subject)) == 0 {
					t.Errorf("%s is not refused", subject)
				}
			}
			return store.calls.Load() - before
		}
		flood()
		store.total = 100
		testkit.Equal(t, "calls with a full window, after many below the limit", calls("me"), 1)
		flood()
		testkit.Equal(t, "calls with more full windows than are kept", calls("you"), 5)
		time.Sleep(time.Hour)
		testkit.Equal(t, "calls after the end of full windows", calls("you"), 1)
	})
}

package access_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/access"
)

// In a bubble of synctest the time begins at 2000-01-01T00:00:00Z, with a window, and moves only when the test sleeps.

func TestLimiter(t *testing.T) {
	exhausted := access.Quota{Limit: 2000, RetryAfter: time.Minute}

	t.Run("counts down to the limit and then refuses", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limiter := access.NewLimiter()
			for i := range 2000 {
				want := access.Quota{Limit: 2000, Remaining: 1999 - i, OK: true}
				if got := limiter.Allow(1); got != want {
					t.Fatalf("request %d: %+v, want %+v", i+1, got, want)
				}
			}
			for range 3 {
				if got := limiter.Allow(1); got != exhausted {
					t.Fatalf("%+v, want %+v", got, exhausted)
				}
			}
		})
	})
	t.Run("counts each token by itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limiter := access.NewLimiter()
			exhaust(limiter, 1)
			if got := limiter.Allow(2); !got.OK || got.Remaining != 1999 {
				t.Errorf("another token: %+v", got)
			}
		})
	})
	t.Run("begins again at the full minute", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limiter := access.NewLimiter()
			time.Sleep(3*time.Minute + 42*time.Second)
			exhaust(limiter, 1)
			time.Sleep(18*time.Second - time.Nanosecond)
			if got := limiter.Allow(1); got.OK {
				t.Fatalf("just before the minute: %+v", got)
			}
			time.Sleep(time.Nanosecond)
			if got := limiter.Allow(1); !got.OK || got.Remaining != 1999 {
				t.Fatalf("at the minute: %+v", got)
			}
		})
	})
	t.Run("says when the window ends, in whole seconds that suffice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limiter := access.NewLimiter()
			exhaust(limiter, 1)
			passed := time.Duration(0)
			for _, at := range []struct{ passed, retryAfter time.Duration }{
				{0, 60 * time.Second},
				{1, 60 * time.Second},
				{time.Second, 59 * time.Second},
				{30*time.Second + 500*time.Millisecond, 30 * time.Second},
				{59 * time.Second, time.Second},
				{time.Minute - 1, time.Second},
			} {
				time.Sleep(at.passed - passed)
				passed = at.passed
				if got := limiter.Allow(1); got.OK || got.RetryAfter != at.retryAfter {
					t.Errorf("after %v: %+v, want %v", at.passed, got, at.retryAfter)
				}
			}
		})
	})
	t.Run("lets exactly the limit through when called at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limiter := access.NewLimiter()
			for range 3 {
				var allowed, remaining atomic.Int64
				var wg sync.WaitGroup
				for range 3000 {
					wg.Go(func() {
						if q := limiter.Allow(1); q.OK {
							allowed.Add(1)
							remaining.Add(int64(q.Remaining))
						}
					})
				}
				wg.Wait()
				if allowed.Load() != 2000 || remaining.Load() != 1999*2000/2 {
					t.Errorf("%d got through, with %d remaining in sum", allowed.Load(), remaining.Load())
				}
				time.Sleep(time.Minute)
			}
		})
	})
}

func exhaust(limiter *access.Limiter, tokenID int64) {
	for limiter.Allow(tokenID).OK {
	}
}

package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/ratelimit"
	"linkstream/schema"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// In a synctest bubble the clock starts at 2000-01-01T00:00:00Z, the start of a window, and advances only when the test
// sleeps.

var exhausted = ratelimit.Quota{Limit: 2000, RetryAfter: time.Minute}

func TestRequestLimiter(t *testing.T) {
	test := func(name string, check func(t *testing.T, limiter *ratelimit.RequestLimiter, token, other int64)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := sqlitetest.New(t)
				check(t, ratelimit.NewRequestLimiter(store), addToken(t, store), addToken(t, store))
			})
		})
	}
	test("counts down to the limit and then refuses", func(t *testing.T, limiter *ratelimit.RequestLimiter, token,
		_ int64) {
		for i := range 2000 {
			want := ratelimit.Quota{Limit: 2000, Remaining: 1999 - i, OK: true}
			if got := allow(t, limiter, token); got != want {
				t.Fatalf("request %d: %+v, want %+v", i+1, got, want)
			}
		}
		for range 3 {
			if got := allow(t, limiter, token); got != exhausted {
				t.Fatalf("%+v, want %+v", got, exhausted)
			}
		}
	})
	test("counts tokens separately", func(t *testing.T, limiter *ratelimit.RequestLimiter, token, other int64) {
		exhaust(t, limiter, token)
		if got := allow(t, limiter, other); !got.OK || got.Remaining != 1999 {
			t.Errorf("another token: %+v", got)
		}
	})
	test("starts a new window at the full minute", func(t *testing.T, limiter *ratelimit.RequestLimiter, token, _ int64) {
		time.Sleep(3*time.Minute + 42*time.Second)
		exhaust(t, limiter, token)
		time.Sleep(18*time.Second - time.Nanosecond)
		if got := allow(t, limiter, token); got.OK {
			t.Fatalf("just before the minute: %+v", got)
		}
		time.Sleep(time.Nanosecond)
		if got := allow(t, limiter, token); !got.OK || got.Remaining != 1999 {
			t.Fatalf("at the minute: %+v", got)
		}
	})
	test("rounds RetryAfter up to whole seconds", func(t *testing.T, limiter *ratelimit.RequestLimiter, token, _ int64) {
		exhaust(t, limiter, token)
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
			if got := allow(t, limiter, token); got.OK || got.RetryAfter != at.retryAfter {
				t.Errorf("after %v: %+v, want %v", at.passed, got, at.retryAfter)
			}
		}
	})
	test("lets exactly the limit through under concurrent calls", func(t *testing.T, limiter *ratelimit.RequestLimiter,
		token, _ int64) {
		for range 3 {
			remaining := 0
			got := flood(t, token, floodRequests, limiter)
			for _, q := range got {
				remaining += q.Remaining
			}
			if len(got) != 2000 || remaining != 1999*2000/2 {
				t.Errorf("%d requests passed; the sum of their Remaining is %d", len(got), remaining)
			}
			time.Sleep(time.Minute)
		}
	})
	test("counts many requests together or not at all", func(t *testing.T, limiter *ratelimit.RequestLimiter, token,
		_ int64) {
		many := func(n int) ratelimit.Quota {
			t.Helper()
			quota, err := limiter.AllowMany(t.Context(), token, n)
			testkit.Must(t, err)
			return quota
		}
		left := 2000
		for _, n := range []int{1, 10, 9, 900, 1070, 3} { // leases have at most 40
			left -= n
			testkit.Equal(t, "quota", many(n), ratelimit.Quota{Limit: 2000, Remaining: left, OK: true})
		}
		testkit.Equal(t, "left", left, 7)
		for range 3 {
			testkit.Equal(t, "quota", many(8), ratelimit.Quota{Limit: 2000, Remaining: left, RetryAfter: time.Minute})
		}
		testkit.Equal(t, "quota", many(7), ratelimit.Quota{Limit: 2000, OK: true})
		testkit.Equal(t, "quota", many(1), exhausted)
	})
	test("takes back a request of the window", func(t *testing.T, limiter *ratelimit.RequestLimiter, token, other int64) {
		limiter.Return(token, time.Now()) // not counted
		exhaust(t, limiter, token)
		began := time.Now()
		limiter.Return(token, began.Add(-1)) // in the window before
		limiter.Return(other, began)
		testkit.Equal(t, "quota", allow(t, limiter, token), exhausted)
		limiter.Return(token, began)
		testkit.Equal(t, "quota", allow(t, limiter, token), ratelimit.Quota{Limit: 2000, OK: true})
		time.Sleep(time.Minute)
		testkit.Equal(t, "remaining", allow(t, limiter, token).Remaining, 1999)
		limiter.Return(token, began)
		testkit.Equal(t, "remaining", allow(t, limiter, token).Remaining, 1998)
	})
	test("allocates nothing for a request within a lease", func(t *testing.T, limiter *ratelimit.RequestLimiter, token,
		_ int64) {
		allow(t, limiter, token)
		granted, _ := schema.Lease(ratelimit.RequestLimit, 1)
		// AllocsPerRun calls the function once more than runs.
		if n := testing.AllocsPerRun(granted-3, func() { allow(t, limiter, token) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
	test("allocates nothing for a refused request", func(t *testing.T, limiter *ratelimit.RequestLimiter, token, _ int64) {
		exhaust(t, limiter, token)
		if n := testing.AllocsPerRun(1000, func() { allow(t, limiter, token) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// allow reports errors without ending the test, so that any goroutine may call it.
func allow(t *testing.T, limiter *ratelimit.RequestLimiter, tokenID int64) ratelimit.Quota {
	t.Helper()
	quota, err := limiter.Allow(t.Context(), tokenID)
	if err != nil {
		t.Error(err)
	}
	return quota
}

func exhaust(t *testing.T, limiter *ratelimit.RequestLimiter, tokenID int64) {
	t.Helper()
	for allow(t, limiter, tokenID).OK {
	}
}

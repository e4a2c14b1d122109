package ratelimit_test

import (
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/ratelimit"
	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

func TestAttempts(t *testing.T) {
	limit := ratelimit.AttemptLimit{Purpose: "test", PerMinute: 3, PerHour: 5}
	attempt := func(t *testing.T, limiter *ratelimit.AttemptLimiter, limit ratelimit.AttemptLimit, subject string) time.Duration {
		t.Helper()
		wait, err := limiter.Allow(t.Context(), limit, subject)
		testkit.Must(t, err)
		return wait
	}
	// In a bubble the clock starts at a full hour and advances only while every goroutine waits.
	inBubble := func(name string, test func(t *testing.T, store *sqlite.Store)) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "links.db")
			synctest.Test(t, func(t *testing.T) { test(t, openStore(t, path)) })
		})
	}
	inBubble("are limited per minute and per hour, over all processes", func(t *testing.T, store *sqlite.Store) {
		processes := []*ratelimit.AttemptLimiter{ratelimit.NewAttemptLimiter(store), ratelimit.NewAttemptLimiter(store)}
		for i, step := range []struct{ passed, wait time.Duration }{
			{0, 0}, {0, 0}, {0, 0}, {0, time.Minute}, {20*time.Second + 1, 40 * time.Second},
			{40 * time.Second, 59 * time.Minute}, // the hour has had five attempts, refused ones included
			{58 * time.Minute, time.Minute}, {time.Minute, 0},
		} {
			time.Sleep(step.passed)
			if wait := attempt(t, processes[i%2], limit, "me"); wait != step.wait {
				t.Errorf("attempt %d: wait %v, want %v", i, wait, step.wait)
			}
		}
	})
	inBubble("are counted by subject and purpose", func(t *testing.T, store *sqlite.Store) {
		limiter := ratelimit.NewAttemptLimiter(store)
		for range 3 {
			attempt(t, limiter, limit, "me")
		}
		if attempt(t, limiter, limit, "me") == 0 {
			t.Error("a fourth attempt is allowed")
		}
		if attempt(t, limiter, limit, "you") != 0 {
			t.Error("another subject is refused")
		}
		other := ratelimit.AttemptLimit{Purpose: "other", PerMinute: 3, PerHour: 5}
		if attempt(t, limiter, other, "me") != 0 {
			t.Error("another purpose is refused")
		}
	})
	inBubble("fail while the store does not count", func(t *testing.T, store *sqlite.Store) {
		store.Close()
		if wait, err := ratelimit.NewAttemptLimiter(store).Allow(t.Context(), limit, "me"); err == nil || wait != 0 {
			t.Errorf("wait %v, error %v", wait, err)
		}
	})
}

func TestNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64",
	} {
		testkit.Equal(t, addr, ratelimit.Network(netip.MustParseAddr(addr)), want)
	}
	testkit.Equal(t, "no address", ratelimit.Network(netip.Addr{}), "invalid IP")
}

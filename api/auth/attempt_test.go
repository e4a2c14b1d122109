package auth_test

import (
	"net/netip"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
)

func TestAttempts(t *testing.T) {
	limit := auth.Limit{Purpose: "test", PerMinute: 3, PerHour: 5}
	try := func(t *testing.T, a *auth.Attempts, limit auth.Limit, subject string) time.Duration {
		t.Helper()
		wait, err := a.Allow(t.Context(), limit, subject)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	inBubble(t, "are limited in each minute and in each hour", func(t *testing.T, v visit) {
		nodes := []*auth.Attempts{auth.NewAttempts(v.store), auth.NewAttempts(v.store)}
		// A bubble begins at a full hour.
		for i, step := range []struct{ passed, wait time.Duration }{
			{0, 0}, {0, 0}, {0, 0}, {0, time.Minute}, {20*time.Second + 1, 40 * time.Second},
			{40 * time.Second, 59 * time.Minute}, // five were tried in the hour before, refused ones included
			{58 * time.Minute, time.Minute}, {time.Minute, 0},
		} {
			time.Sleep(step.passed)
			if wait := try(t, nodes[i%2], limit, "me"); wait != step.wait {
				t.Errorf("attempt %d: wait %v, want %v", i, wait, step.wait)
			}
		}
	})
	inBubble(t, "are counted by subject and purpose", func(t *testing.T, v visit) {
		a := auth.NewAttempts(v.store)
		for range 4 {
			try(t, a, limit, "me")
		}
		if try(t, a, limit, "me") == 0 {
			t.Error("not limited")
		}
		if try(t, a, limit, "you") != 0 || try(t, a, auth.Limit{Purpose: "other", PerMinute: 3, PerHour: 5}, "me") != 0 {
			t.Error("limited by what others have tried")
		}
	})
	inBubble(t, "are refused while nobody can count them", func(t *testing.T, v visit) {
		v.store.Close()
		if _, err := auth.NewAttempts(v.store).Allow(t.Context(), limit, "me"); err == nil || schema.ErrorCode(err) == "" {
			t.Error(err)
		}
	})
}

func TestNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64",
	} {
		if got := auth.Network(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if got := auth.Network(netip.Addr{}); got != "invalid IP" {
		t.Error(got)
	}
}

package resolve_test

import (
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema/testkit"
)

func TestState(t *testing.T) {
	now := time.Now()
	until := now.Add(time.Minute)
	check := func(t *testing.T, s *resolve.State, fresh, dropped bool) {
		t.Helper()
		if got := resolve.Fresh(s, now); got != fresh {
			t.Errorf("fresh: %t", got)
		}
		if _, got := resolve.Dropped(s); got != dropped {
			t.Errorf("dropped: %t", got)
		}
	}
	t.Run("fresh until its time, then stale", func(t *testing.T) {
		var s resolve.State
		resolve.SetFresh(&s, until)
		check(t, &s, true, false)
		if resolve.Fresh(&s, until) {
			t.Error("fresh at its time")
		}
	})
	t.Run("dropped, then stale, then dropped again", func(t *testing.T) {
		var s resolve.State
		resolve.SetFresh(&s, until)
		for range 3 {
			resolve.Drop(&s)
			check(t, &s, false, true)
			drop, _ := resolve.Dropped(&s)
			resolve.SetStale(&s, drop)
			check(t, &s, false, false)
		}
	})
	t.Run("a failed look-up does not undo a later drop", func(t *testing.T) {
		var s resolve.State
		resolve.Drop(&s)
		first, _ := resolve.Dropped(&s)
		resolve.Drop(&s)
		resolve.SetStale(&s, first)
		check(t, &s, false, true)
	})
	t.Run("retired for good", func(t *testing.T) {
		var s resolve.State
		resolve.Retire(&s)
		for range 3 {
			drop, _ := resolve.Dropped(&s)
			resolve.SetStale(&s, drop)
			check(t, &s, false, true)
			resolve.Drop(&s)
			testkit.Equal(t, "retired", resolve.IsRetired(&s), true)
		}
	})
	t.Run("a failed look-up does not undo a drop after another failure", func(t *testing.T) {
		var s resolve.State
		resolve.Drop(&s)
		first, _ := resolve.Dropped(&s)
		resolve.SetStale(&s, first)
		resolve.Drop(&s)
		resolve.SetStale(&s, first) // of another request that waited for the same look-up
		check(t, &s, false, true)
	})
}

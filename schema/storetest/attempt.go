package storetest

import (
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var attemptBehaviours = []behaviour[schema.Database]{
	{"CountAttempt counts each key separately", countsAttemptsByKey},
	{"CountAttempt counts each window separately", countsAttemptsByWindow},
	{"CountAttempt treats one moment in several zones as one window", countsAttemptsByMoment},
	{"CountAttempt counts all concurrent calls", countsConcurrentAttempts},
	{"CountAttempt counts all concurrent calls while old windows are deleted", countsWhileWindowsFollow},
}

func wantAttempts(t *testing.T, store schema.AttemptStore, key byte, window time.Time, from, to int64) {
	t.Helper()
	for want := from; want <= to; want++ {
		got, err := store.CountAttempt(t.Context(), [32]byte{31: key}, window)
		testkit.Must(t, err)
		testkit.Equal(t, "attempts", got, want)
	}
}

func countsAttemptsByKey(t *testing.T, store schema.Database) {
	wantAttempts(t, store, 1, window(0), 1, 5)
	wantAttempts(t, store, 0, window(0), 1, 2)
	wantAttempts(t, store, 1, window(0), 6, 7)
}

func countsAttemptsByWindow(t *testing.T, store schema.Database) {
	wantAttempts(t, store, 1, window(60), 1, 3)
	wantAttempts(t, store, 1, window(61), 1, 2)
	wantAttempts(t, store, 1, window(60), 4, 5) // from a process whose clock is slow
	wantAttempts(t, store, 1, window(0), 1, 2)
	wantAttempts(t, store, 1, window(60), 6, 6) // exactly an hour old, so it is kept
}

func countsAttemptsByMoment(t *testing.T, store schema.Database) {
	wantAttempts(t, store, 1, window(0), 1, 1)
	wantAttempts(t, store, 1, window(0).UTC(), 2, 2)
	wantAttempts(t, store, 1, window(0).In(time.FixedZone("west", -7*3600)), 3, 3)
}

// wantEach requires that got is 1, 2, …, in any order.
func wantEach(t *testing.T, got []int64) {
	t.Helper()
	slices.Sort(got)
	for i, n := range got {
		testkit.Equal(t, "attempts", n, int64(i)+1)
	}
}

func countsConcurrentAttempts(t *testing.T, store schema.Database) {
	got := make([]int64, 64)
	for _, err := range concurrently(len(got), func(i int) (err error) {
		got[i], err = store.CountAttempt(t.Context(), [32]byte{7}, window(0))
		return err
	}) {
		testkit.Must(t, err)
	}
	wantEach(t, got)
}

// countsWhileWindowsFollow counts in two new windows while the same calls compete to delete old ones.
func countsWhileWindowsFollow(t *testing.T, store schema.Database) {
	for key := range byte(100) {
		wantAttempts(t, store, key, window(int(key)%10), 1, 1)
	}
	const n = 60
	var got [2][n]int64
	for _, err := range concurrently(2*n, func(i int) (err error) {
		w := i % 2
		got[w][i/2], err = store.CountAttempt(t.Context(), [32]byte{31: 1}, window(100+30*w))
		return err
	}) {
		testkit.Must(t, err)
	}
	wantEach(t, got[0][:])
	wantEach(t, got[1][:])
}

// TestOldAttempts checks that the store deletes old attempts a few at a time. rows returns how many it keeps.
func TestOldAttempts(t *testing.T, store schema.AttemptStore, rows func() int) {
	count := func(key byte, window time.Time) int64 {
		t.Helper()
		attempts, err := store.CountAttempt(t.Context(), [32]byte{key}, window)
		testkit.Must(t, err)
		return attempts
	}
	now := window(0).Truncate(time.Hour)
	for key := range byte(100) {
		count(key, now.Add(-time.Hour-time.Minute))
	}
	count(0, now.Add(-time.Hour))
	testkit.Equal(t, "rows while none is old", rows(), 101)
	t.Run("each call deletes a few that are old", func(t *testing.T) {
		for calls := 0; rows() > 2; calls++ {
			if calls > 10 {
				t.Fatalf("%d rows are left after %d calls", rows(), calls)
			}
			count(0, now)
		}
	})
	t.Run("those of an hour ago are not old", func(t *testing.T) {
		count(0, now)
		testkit.Equal(t, "attempts", count(0, now.Add(-time.Hour)), 2)
	})
}

package storetest

import (
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var attemptBehaviours = []behaviour[schema.Database]{
	{"CountAttempts counts each key separately", countsAttemptsByKey},
	{"CountAttempts counts each window separately", countsAttemptsByWindow},
	{"CountAttempts treats one moment in several zones as one window", countsAttemptsByMoment},
	{"CountAttempts counts many keys and windows in one call", countsManyAttempts},
	{"CountAttempts counts nothing if a call has no attempts", countsNoAttempts},
	{"CountAttempts counts all concurrent calls", countsConcurrentAttempts},
	{"CountAttempts counts all concurrent calls that name keys in different orders", countsCrossedAttempts},
	{"CountAttempts counts all concurrent calls while old windows are deleted", countsWhileWindowsFollow},
}

// countOne counts one attempt and returns the total of its window.
func countOne(t *testing.T, store schema.AttemptStore, key [32]byte, window time.Time) (int64, error) {
	totals, err := store.CountAttempts(t.Context(), []schema.Attempts{{Key: key, Window: window, N: 1}})
	if err != nil {
		return 0, err
	}
	return totals[0], nil
}

func wantAttempts(t *testing.T, store schema.AttemptStore, key byte, window time.Time, from, to int64) {
	t.Helper()
	for want := from; want <= to; want++ {
		got, err := countOne(t, store, [32]byte{31: key}, window)
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

func countsManyAttempts(t *testing.T, store schema.Database) {
	var attempts []schema.Attempts
	for i := range 300 { // not in order of their keys
		attempts = append(attempts, schema.Attempts{Key: [32]byte{byte(i * 7)}, Window: window(i / 256), N: int64(i) + 1})
	}
	for round := range int64(2) {
		totals, err := store.CountAttempts(t.Context(), attempts)
		testkit.Must(t, err)
		testkit.Equal(t, "totals", len(totals), len(attempts))
		for i, total := range totals {
			testkit.Equal(t, "total", total, (round+1)*attempts[i].N)
		}
	}
}

func countsNoAttempts(t *testing.T, store schema.Database) {
	totals, err := store.CountAttempts(t.Context(), nil)
	testkit.Must(t, err)
	testkit.Equal(t, "totals", len(totals), 0)
}

// countsCrossedAttempts would find deadlocks of calls that lock the same rows in different orders.
func countsCrossedAttempts(t *testing.T, store schema.Database) {
	const calls = 32
	var got [2][calls]int64
	for _, err := range concurrently(calls, func(i int) error {
		attempts := []schema.Attempts{{Key: [32]byte{1}, Window: window(0), N: 1},
			{Key: [32]byte{2}, Window: window(0), N: 1}}
		if i%2 == 1 {
			slices.Reverse(attempts)
		}
		totals, err := store.CountAttempts(t.Context(), attempts)
		if err == nil {
			got[0][i], got[1][i] = totals[i%2], totals[1-i%2]
		}
		return err
	}) {
		testkit.Must(t, err)
	}
	wantEach(t, got[0][:])
	wantEach(t, got[1][:])
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
		got[i], err = countOne(t, store, [32]byte{7}, window(0))
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
		got[w][i/2], err = countOne(t, store, [32]byte{31: 1}, window(100+30*w))
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
		attempts, err := countOne(t, store, [32]byte{key}, window)
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
	t.Run("attempts an hour ago are not old", func(t *testing.T) {
		count(0, now)
		testkit.Equal(t, "attempts", count(0, now.Add(-time.Hour)), 2)
	})
}

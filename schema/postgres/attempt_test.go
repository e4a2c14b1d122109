package postgres_test

import (
	"testing"
	"time"

	"linkstream/schema/testkit"
)

func TestOldAttempts(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, raw := openLinks(t, dsn), openRaw(t, dsn)
	count := func(key byte, window time.Time) {
		t.Helper()
		_, err := links.CountAttempt(t.Context(), [32]byte{key}, window)
		testkit.Must(t, err)
	}
	kept := func() (n int) {
		t.Helper()
		testkit.Must(t, raw.QueryRow(t.Context(), `SELECT count(*) FROM attempts`).Scan(&n))
		return n
	}
	now := time.Now().Truncate(time.Hour)
	for key := range byte(100) {
		count(key, now.Add(-time.Hour-time.Minute))
	}
	count(0, now.Add(-time.Hour))
	before := kept()
	t.Run("are forgotten by and by, a few with each call", func(t *testing.T) {
		if before != 101 {
			t.Fatalf("%d rows are there while none is old, want 101", before)
		}
		for calls := 0; kept() > 2; calls++ {
			if calls > 10 {
				t.Fatalf("%d rows are still there after %d calls", kept(), calls)
			}
			count(0, now)
		}
	})
	t.Run("are not those of an hour ago", func(t *testing.T) {
		count(0, now)
		if n, err := links.CountAttempt(t.Context(), [32]byte{}, now.Add(-time.Hour)); n != 2 || err != nil {
			t.Fatalf("got %d attempts (error %v), want 2", n, err)
		}
	})
}

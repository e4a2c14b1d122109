package spool_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// appendLimited appends n clicks on a link. Every third one does not count towards its limit.
func appendLimited(tb testing.TB, s *spool.Spool, link int64, n int) (limited int64) {
	tb.Helper()
	for i := range n {
		c := click(link)
		if c.Limited = i%3 != 0; c.Limited {
			limited++
		}
		if !s.Append(uint64(i), c) {
			tb.Fatalf("no room for a click")
		}
	}
	return limited
}

// ship reads and acknowledges all clicks, so that segments are removed.
func ship(tb testing.TB, s *spool.Spool) {
	tb.Helper()
	for _, l := range s.Lanes() {
		read(tb, l)
		testkit.Must(tb, l.Acknowledge())
	}
}

func wantLeft(tb testing.TB, s *spool.Spool, of schema.Incarnation, want map[int64]int64) {
	tb.Helper()
	left := s.LeftLeases()
	if len(left) != 1 || !maps.Equal(left[of], want) {
		tb.Fatalf("left are %v, want %v of %s", left, want, of)
	}
}

func TestLimitedClicks(t *testing.T) {
	cfg := config(t.TempDir(), 2)
	s, _ := open(t, cfg)
	testkit.Must(t, s.NoteLeases())
	testkit.Must(t, s.NoteLeases()) // again
	want := map[int64]int64{1: appendLimited(t, s, 1, 70), 2: appendLimited(t, s, 2, 20)}
	ship(t, s)
	want[1] += appendLimited(t, s, 1, 70)
	t.Run("a line that was not written to its end is not counted", func(t *testing.T) {
		cut := kill(t, cfg)
		path := filepath.Join(cut.Dir, "limited")
		text, err := os.ReadFile(path)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(path, append(text, `{"incarnation":"`...), 0o600))
		next, closeNext := open(t, cut)
		wantLeft(t, next, s.Incarnation(), want)
		closeNext()
	})
	t.Run("a damaged file is set aside", func(t *testing.T) {
		damaged := kill(t, cfg)
		path := filepath.Join(damaged.Dir, "limited")
		testkit.Must(t, os.WriteFile(path, []byte("{}\n"), 0o600))
		next, log, closeNext := openLogged(t, damaged)
		testkit.Equal(t, "left", len(next.LeftLeases()), 0)
		testkit.Equal(t, "errors in the log", log.Count("level=ERROR"), 1)
		_, err := os.Stat(path + ".damaged")
		testkit.Must(t, err)
		closeNext()
	})
}

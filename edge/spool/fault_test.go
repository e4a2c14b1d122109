package spool_test

import (
	"bytes"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

const page = 4 << 10

// truncate cuts a file short that the spool has mapped. From then on the kernel answers an access to the pages that are
// cut off as it does when the file system has no block for them: with SIGBUS.
func truncate(tb testing.TB, path string, size int64) {
	tb.Helper()
	testkit.Must(tb, os.Truncate(path, size))
}

// onlySegment returns the path of the spool's segment with clicks.
func onlySegment(tb testing.TB, dir string) string {
	tb.Helper()
	segments := segmentsIn(tb, dir)
	testkit.Equal(tb, "segments", len(segments), 1)
	return segments[0]
}

func TestPagesThatCannotBeHad(t *testing.T) {
	paged := func(t *testing.T) spool.Config { // a segment has two pages
		cfg := config(t.TempDir(), 1)
		cfg.SegmentBytes = 2 * page
		return cfg
	}
	t.Run("later clicks go to another segment and earlier ones stay whole", func(t *testing.T) {
		cfg := paged(t)
		s, log, _ := openLogged(t, cfg)
		lane := s.Lanes()[0]
		appendClicks(t, s, 0, 1, 10)
		truncate(t, onlySegment(t, cfg.Dir), page)
		appendClicks(t, s, 0, 11, 500) // one click begins in the first page and ends in the second
		testkit.Equal(t, "dropped", s.Dropped(), 0)
		isRun(t, read(t, lane), lane.ID(), 1, 1, 500)
		testkit.Equal(t, "damage", log.Contains("damaged"), false)
		later, log, _ := openLogged(t, kill(t, cfg))
		isRun(t, read(t, recovered(later)[0]), lane.ID(), 1, 1, 500)
		testkit.Equal(t, "damage after a restart", log.Contains("damaged"), false)
	})
	t.Run("clicks are dropped only while no segment can be written", func(t *testing.T) {
		cfg := paged(t)
		var uptime, created atomic.Int64
		cfg.Uptime = func() time.Duration { return time.Duration(uptime.Load()) }
		cfg.OnSegment = func(ahead bool) error {
			if !ahead {
				created.Add(1)
			}
			return nil
		}
		cfg.Sync = 10 * time.Millisecond
		s, log, _ := openLogged(t, cfg)
		appendClicks(t, s, 0, 1, 10)
		testkit.Eventually(t, "there is a spare", s.Lanes()[0].HasSpare)
		for _, path := range files(t, cfg.Dir, ".segment") {
			truncate(t, path, 0)
		}
		before := created.Load()
		for range 2 { // the second one does not try again at once, as that takes I/O
			testkit.Equal(t, "room", s.Append(0, click(11)), false)
		}
		testkit.Equal(t, "segments created for these clicks", created.Load()-before, 0)
		testkit.Equal(t, "dropped", s.Dropped(), 2)
		testkit.Equal(t, "files", len(files(t, cfg.Dir, ".segment")), 1) // the spare was of no use
		testkit.Eventually(t, "it is reported",
			func() bool { return log.Contains("cannot write spool segments to their end") })
		uptime.Store(int64(time.Second))
		testkit.Eventually(t, "there is room", func() bool { return s.Append(0, click(12)) })
	})
	t.Run("what a click leaves that does not fit is not taken for another one", func(t *testing.T) {
		cfg := paged(t)
		var full atomic.Bool
		cfg.OnSegment = func(ahead bool) error {
			if ahead || full.Load() {
				return unix.ENOSPC
			}
			return nil
		}
		s, _ := open(t, cfg)
		appendClicks(t, s, 0, 1, 10)
		full.Store(true)
		truncate(t, onlySegment(t, cfg.Dir), page)
		long := click(11)
		long.UserAgent, long.Referrer = bytes.Repeat([]byte("x"), 200), bytes.Repeat([]byte("x"), schema.MaxReferrerLen)
		for s.Append(0, long) { // until one does not fit into the page
		}
		s.Append(0, click(12))
		later, log, _ := openLogged(t, kill(t, cfg))
		read(t, recovered(later)[0])
		testkit.Equal(t, "damage", log.Contains("damaged"), false)
	})
	t.Run("a segment that cannot be read is skipped and reported", func(t *testing.T) {
		cfg := paged(t)
		s, log, _ := openLogged(t, cfg)
		lane := s.Lanes()[0]
		appendClicks(t, s, 0, 1, 10)
		path := onlySegment(t, cfg.Dir)
		appendClicks(t, s, 0, 11, 500)
		second := int64(firstSeq(t, segmentsIn(t, cfg.Dir)[1]))
		truncate(t, path, 0)
		isRun(t, read(t, lane), lane.ID(), uint64(second), second, 500)
		testkit.Equal(t, "reported", log.Contains("are damaged"), true)
		testkit.Equal(t, "damaged", s.Damaged(), 1)
		testkit.Must(t, lane.Acknowledge())
	})
	t.Run("it is reported once and the spool is not ready until a segment can be created", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cfg := paged(t)
			s, log, _ := openLogged(t, cfg)
			pass := func() { // time for the disk to be looked at
				time.Sleep(5 * cfg.Sync)
				synctest.Wait()
			}
			appendClicks(t, s, 0, 1, 10)
			pass()
			testkit.Must(t, s.Ready())
			testkit.Equal(t, "reported before", log.String(), "")
			truncate(t, onlySegment(t, cfg.Dir), page)
			appendClicks(t, s, 0, 11, 200)
			pass()
			testkit.Equal(t, "reported", log.Contains("cannot write spool segments to their end\" segments=1"), true)
			if s.Ready() == nil {
				t.Error("the spool is ready")
			}
			appendClicks(t, s, 0, 201, 600)
			pass()
			testkit.Must(t, s.Ready())
			testkit.Equal(t, "reports", strings.Count(log.String(), "\n"), 1)
		})
	})
}

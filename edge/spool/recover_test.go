package spool_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// kill returns the configuration of a spool as it is left if the process that uses cfg is killed now.
func kill(tb testing.TB, cfg spool.Config) spool.Config {
	cfg.Dir = copyDir(tb, cfg.Dir)
	return cfg
}

// recovered returns the lanes of earlier processes.
func recovered(s *spool.Spool) (lanes []*spool.Lane) {
	for _, l := range s.Lanes() {
		if l.Recovered() {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// readSome reads some clicks from a lane and returns their number. Each click must be on the link that equals its seq.
func readSome(tb testing.TB, lane *spool.Lane, id schema.Lane, firstSeq int64) int64 {
	tb.Helper()
	var batch stream.Batch
	n := int64(lane.Read(&batch, 3000))
	isRun(tb, decode(tb, &batch), id, uint64(firstSeq), firstSeq, firstSeq+n-1)
	return n
}

func TestRecovery(t *testing.T) {
	t.Run("every appended click is found after a kill at any time", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, _ := open(t, cfg)
		id := s.Lanes()[0].ID()
		for last := int64(1); last <= 500; last++ {
			appendClicks(t, s, 0, last, last)
			if last%31 != 0 {
				continue
			}
			later, closeLater := open(t, kill(t, cfg))
			testkit.Equal(t, "pending", later.Pending(), uint64(last))
			isRun(t, read(t, recovered(later)[0]), id, 1, 1, last)
			closeLater()
		}
	})
	t.Run("acknowledged clicks are not read again", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, _ := open(t, cfg)
		lane := s.Lanes()[0]
		appendClicks(t, s, 0, 1, 300)
		read(t, lane)
		testkit.Must(t, lane.Acknowledge())
		appendClicks(t, s, 0, 301, 700)
		acknowledged := int64(300)
		for range 3 { // each process ships some clicks, reads some more, and is killed
			cfg = kill(t, cfg)
			s, _ = open(t, cfg)
			testkit.Equal(t, "pending", s.Pending(), 700-uint64(acknowledged))
			n := readSome(t, recovered(s)[0], lane.ID(), acknowledged+1)
			testkit.Must(t, recovered(s)[0].Acknowledge())
			readSome(t, recovered(s)[0], lane.ID(), acknowledged+n+1)
			acknowledged += n
		}
	})
	t.Run("clicks of a segment that is gone are not pending", func(t *testing.T) {
		cfg, id, segments := left(t, smallest)
		testkit.Must(t, os.Remove(segments[0]))
		second := int64(firstSeq(t, segments[1]))
		s, log, _ := openLogged(t, cfg)
		testkit.Equal(t, "pending", s.Pending(), uint64(leftClicks-second+1))
		isRun(t, read(t, recovered(s)[0]), id, uint64(second), second, leftClicks)
		testkit.Equal(t, "reported", log.String(), "")
	})
	t.Run("a segment whose process was killed before its first record has none", func(t *testing.T) {
		cfg, id, segments := left(t, smallest)
		last := segments[len(segments)-1]
		before := int64(firstSeq(t, last)) - 1
		damage(t, last, func(data []byte) { clear(data[headerLen:]) })
		s, log, _ := openLogged(t, cfg)
		testkit.Equal(t, "pending", s.Pending(), uint64(before))
		isRun(t, read(t, recovered(s)[0]), id, 1, 1, before)
		testkit.Equal(t, "reported", log.String(), "")
	})
	t.Run("the end of a lane is known as soon as its last segment is gone", func(t *testing.T) {
		cfg, id, _ := left(t, smallest)
		s, _, shipper := shipping(t, cfg)
		_, err := shipper.Ship(t.Context(), recovered(s)[0], new(stream.Batch))
		testkit.Must(t, err)
		killed := kill(t, cfg)
		testkit.Equal(t, "segments with clicks", len(segmentsIn(t, killed.Dir)), 0)
		wantLanes(t, inspect(t, killed.Dir), schema.SpoolLane{Lane: id, Recorded: leftClicks})
	})
	t.Run("spares and empty folders are removed", func(t *testing.T) {
		cfg := config(t.TempDir(), 3)
		open(t, cfg)
		left := kill(t, cfg)
		testkit.Equal(t, "segments", len(files(t, left.Dir, ".segment")), 3)
		s, closeSpool := open(t, left)
		testkit.Equal(t, "recovered lanes", len(recovered(s)), 0)
		testkit.Equal(t, "folders", folders(t, left.Dir), 1)
		closeSpool()
		testkit.Equal(t, "segments", len(files(t, left.Dir, ".segment")), 0)
	})
	t.Run("a segment without its magic is a spare", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		open(t, cfg)
		left := kill(t, cfg)
		damage(t, files(t, left.Dir, ".segment")[0], func(data []byte) { data[8], data[atFirstSeq] = 1, 1 })
		s, log, _ := openLogged(t, left)
		testkit.Equal(t, "recovered lanes", len(recovered(s)), 0)
		testkit.Equal(t, "reported", log.Contains("level=ERROR"), false)
	})
	t.Run("acknowledged clicks are read again if their segments were not removed", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, _ := open(t, cfg)
		lane := s.Lanes()[0]
		appendClicks(t, s, 0, 1, 400)
		before := kill(t, cfg)
		acknowledged := readSome(t, lane, lane.ID(), 1)
		acknowledged += readSome(t, lane, lane.ID(), acknowledged+1)
		testkit.Must(t, lane.Acknowledge())
		left := kill(t, cfg)
		for _, path := range files(t, before.Dir, ".segment") {
			freed := filepath.Join(left.Dir, path[len(before.Dir):])
			if _, err := os.Stat(freed); err != nil {
				testkit.Must(t, os.Rename(path, freed))
			}
		}
		later, _ := open(t, left)
		clicks := read(t, recovered(later)[0])
		again := int64(len(clicks)) - (400 - acknowledged)
		if again <= 0 {
			t.Fatal("no segment was removed: the test proves nothing")
		}
		isRun(t, clicks[:again], lane.ID(), 1, 1, again)
		isRun(t, clicks[again:], lane.ID(), uint64(acknowledged)+1, acknowledged+1, 400)
	})
	t.Run("clicks are found in a directory of any name", func(t *testing.T) {
		cfg := config(filepath.Join(t.TempDir(), `[a]*?{b,c}\d`), 1)
		s, closeSpool := open(t, cfg)
		appendClicks(t, s, 0, 1, 10)
		closeSpool()
		later, _ := open(t, cfg)
		testkit.Equal(t, "pending", later.Pending(), 10)
		isRun(t, read(t, recovered(later)[0]), s.Lanes()[0].ID(), 1, 1, 10)
	})
	t.Run("what a killed process left is written to the disk", func(t *testing.T) {
		cfg := config(t.TempDir(), 2)
		cfg.Sync = time.Hour
		s, _ := open(t, cfg)
		appendClicks(t, s, 0, 1, 300)
		cfg = kill(t, cfg)
		synced := make(map[string]int)
		cfg.OnSync = func(path string, size int) { synced[path] = size }
		left := segmentsIn(t, cfg.Dir)
		open(t, cfg)
		for _, path := range append(left, filepath.Dir(left[0]), cfg.Dir, filepath.Dir(cfg.Dir)) {
			size, ok := synced[path]
			if !ok || filepath.Ext(path) != "" && size != smallest {
				t.Errorf("%d bytes of %s are on the disk, %t", size, path, ok)
			}
		}
	})
	t.Run("other folders are left alone", func(t *testing.T) {
		dir := t.TempDir()
		testkit.Must(t, os.Mkdir(filepath.Join(dir, "lost+found"), 0o700))
		open(t, config(dir, 1))
		testkit.Equal(t, "folders", folders(t, dir), 2)
	})
}

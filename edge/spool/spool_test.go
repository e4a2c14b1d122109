package spool_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
)

func TestSpool(t *testing.T) {
	t.Run("gives clicks back in order, numbered from 1, over many segments", func(t *testing.T) {
		dir := t.TempDir()
		s, _ := open(t, config(dir, 1))
		lane := s.Lanes()[0]
		appendClicks(t, s, 0, 1, 1000)
		if n := len(files(t, dir, ".segment")); n < 8 {
			t.Fatalf("%d segments are not many", n)
		}
		isRun(t, read(t, lane), lane.ID(), 1, 1, 1000)
		equal(t, "clicks to read again", len(read(t, lane)), 0)
		appendClicks(t, s, 0, 1001, 1003)
		isRun(t, read(t, lane), lane.ID(), 1001, 1001, 1003)
	})
	t.Run("reads no further than it is told, by one click at most", func(t *testing.T) {
		s, _ := open(t, config(t.TempDir(), 1))
		appendClicks(t, s, 0, 1, 500)
		var batch stream.Batch
		for next := int64(1); next <= 500; batch.Reset(time.Time{}) {
			n := int64(s.Lanes()[0].Read(&batch, 1000))
			if n == 0 || batch.Size() > 1000+schema.MaxClickLen {
				t.Fatalf("%d clicks in %d bytes", n, batch.Size())
			}
			isRun(t, decode(t, &batch), s.Lanes()[0].ID(), uint64(next), next, next+n-1)
			next += n
		}
	})
	t.Run("keeps every field, also when all are empty or at their limits", func(t *testing.T) {
		s, _ := open(t, config(t.TempDir(), 1))
		long := func(n int) []byte { return bytes.Repeat([]byte{0xff}, n) }
		clicks := []schema.Click{
			*click(1),
			{ClickedAt: time.UnixMilli(0)},
			{LinkID: math.MinInt64, ClickedAt: time.UnixMilli(-1), UserAgent: long(schema.MaxUserAgentLen),
				Referrer: long(schema.MaxReferrerLen), Network: long(schema.MaxNetworkLen)},
			*click(2),
		}
		for _, c := range clicks {
			equal(t, "room", s.Append(0, &c), true)
		}
		got := read(t, s.Lanes()[0])
		equal(t, "clicks", len(got), len(clicks))
		for i, want := range clicks {
			if !bytes.Equal(schema.AppendClickBody(nil, &got[i]), schema.AppendClickBody(nil, &want)) {
				t.Errorf("click %d: got %+v, want %+v", i, got[i], want)
			}
		}
	})
	t.Run("chooses the lane by the hint", func(t *testing.T) {
		s, _ := open(t, config(t.TempDir(), 3))
		for link := range int64(30) {
			appendClicks(t, s, uint64(link), link, link)
		}
		for i, lane := range s.Lanes() {
			equal(t, "lane", lane.ID().Number, uint32(i))
			for j, c := range read(t, lane) {
				equal(t, "link", c.LinkID, int64(3*j+i))
			}
			equal(t, "pending", lane.Pending(), 10)
		}
	})
	t.Run("frees the segments whose clicks are acknowledged", func(t *testing.T) {
		dir := t.TempDir()
		s, _ := open(t, config(dir, 1))
		lane := s.Lanes()[0]
		for link := int64(1); link < 20_000; link += 500 { // many times what fits at once
			appendClicks(t, s, 0, link, link+499)
			equal(t, "pending", s.Pending(), 500)
			read(t, lane)
			equal(t, "pending after reading", s.Pending(), 500)
			must(t, lane.Acknowledge())
			equal(t, "pending after acknowledging", s.Pending(), 0)
		}
		if n := len(files(t, dir, ".segment")); n > 3 { // one in use, its spare, and a spare being made
			t.Fatalf("%d segments are left", n)
		}
	})
	t.Run("frees the other segments when one was removed by someone else", func(t *testing.T) {
		dir := t.TempDir()
		s, _ := open(t, config(dir, 1))
		appendClicks(t, s, 0, 1, 1000)
		must(t, os.Remove(files(t, dir, ".segment")[0]))
		read(t, s.Lanes()[0])
		if err := s.Lanes()[0].Acknowledge(); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("error %v", err)
		}
		if n := len(files(t, dir, ".segment")); n > 3 {
			t.Fatalf("%d segments are left", n)
		}
	})
}

// full returns a spool of two lanes, filled by clicks of hint 0 until one was dropped, and the number of those it took.
func full(t *testing.T, dir string) (s *spool.Spool, log *logBuffer, taken int64) {
	t.Helper()
	cfg := config(dir, 2)
	cfg.MaxBytes = 8 * smallest
	s, log, _ = openLogged(t, cfg)
	for s.Append(0, click(taken+1)) {
		taken++
		synctest.Wait() // until the next spare is there
	}
	return s, log, taken
}

func TestFullSpool(t *testing.T) {
	bubble := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	bubble("tries the other lanes before it drops a click", func(t *testing.T) {
		s, _, taken := full(t, t.TempDir())
		first := int64(s.Lanes()[0].Pending())
		if s.Lanes()[1].Pending() == 0 {
			t.Fatal("the second lane took no click")
		}
		isRun(t, read(t, s.Lanes()[0]), s.Lanes()[0].ID(), 1, 1, first)
		isRun(t, read(t, s.Lanes()[1]), s.Lanes()[1].ID(), 1, first+1, taken)
	})
	bubble("counts what it drops, and says so once each interval", func(t *testing.T) {
		s, log, _ := full(t, t.TempDir())
		equal(t, "room", s.Append(1, click(0)), false)
		equal(t, "dropped", s.Dropped(), 2)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		equal(t, "reported", log.contains("clicks are lost\" dropped=2 dropped_total=2"), true)
		equal(t, "room", s.Append(1, click(0)), false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		equal(t, "reported again", log.contains("clicks are lost\" dropped=1 dropped_total=3"), true)
	})
	bubble("takes no more bytes than it may, and clicks again once some are acknowledged", func(t *testing.T) {
		dir := t.TempDir()
		s, _, taken := full(t, dir)
		equal(t, "segments", len(files(t, dir, ".segment")), 8)
		lane := s.Lanes()[0]
		pending := lane.Pending()
		read(t, lane)
		must(t, lane.Acknowledge())
		time.Sleep(time.Second) // a lane does not ask for a segment with every click
		appendClicks(t, s, 0, taken+1, taken+50)
		isRun(t, read(t, lane), lane.ID(), pending+1, taken+1, taken+50)
	})
	bubble("starts when leftovers fill it, and takes clicks once they are shipped", func(t *testing.T) {
		dir := t.TempDir()
		full(t, dir)
		cfg := config(copyDir(t, dir), 2)
		cfg.MaxBytes = 8 * smallest
		s, _ := open(t, cfg)
		equal(t, "room", s.Append(0, click(0)), false)
		for _, lane := range s.Lanes()[:2] {
			equal(t, "leftover", lane.Leftover(), true)
			read(t, lane)
			must(t, lane.Acknowledge())
		}
		time.Sleep(time.Second)
		appendClicks(t, s, 0, 1, 50)
	})
}

func TestOpen(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Run("names every invalid setting", func(t *testing.T) {
		_, err := spool.Open(spool.Config{Dir: t.TempDir(), Lanes: 65, SegmentBytes: 100}, log)
		for _, flag := range []string{"-spool.lanes", "-spool.segment-bytes", "-spool.max-bytes", "-spool.sync"} {
			if err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("%s is not in %v", flag, err)
			}
		}
	})
	t.Run("refuses a directory that is in use, and harms nothing in it", func(t *testing.T) {
		dir := t.TempDir()
		s, closeFirst := open(t, config(dir, 1))
		appendClicks(t, s, 0, 1, 10)
		_, err := spool.Open(config(dir, 1), log)
		if err == nil || !strings.Contains(err.Error(), "another process uses it") {
			t.Fatalf("error %v", err)
		}
		equal(t, "folders", folders(t, dir), 1)
		isRun(t, read(t, s.Lanes()[0]), s.Lanes()[0].ID(), 1, 1, 10)
		closeFirst()
		again, _ := open(t, config(dir, 1))
		equal(t, "pending", again.Pending(), 10)
	})
	t.Run("lets one of those have it that start at the same time", func(t *testing.T) {
		dir := memoryDir(t)
		var starting sync.WaitGroup
		for range 4 {
			starting.Go(func() {
				for range 100 {
					s, err := spool.Open(config(dir, 1), log)
					switch {
					case err == nil:
						if err := s.Close(); err != nil {
							t.Error(err)
						}
					case !strings.Contains(err.Error(), "another process uses it"):
						t.Error(err)
					}
				}
			})
		}
		starting.Wait()
		equal(t, "folders", folders(t, dir), 0)
	})
	t.Run("says which directory it cannot make", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(file, nil, 0o600))
		_, err := spool.Open(config(filepath.Join(file, "spool"), 1), log)
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Fatalf("error %v", err)
		}
	})
}

func TestClose(t *testing.T) {
	t.Run("leaves nothing where nothing is pending", func(t *testing.T) {
		dir := t.TempDir()
		s, closeSpool := open(t, config(dir, 2))
		appendClicks(t, s, 0, 1, 500)
		read(t, s.Lanes()[0])
		must(t, s.Lanes()[0].Acknowledge())
		closeSpool()
		equal(t, "files", fmt.Sprint(files(t, dir, "")), fmt.Sprint([]string{filepath.Join(dir, "lock")}))
		equal(t, "folders", folders(t, dir), 0)
	})
	t.Run("leaves what is pending to the next process, and no spare", func(t *testing.T) {
		dir := t.TempDir()
		first, closeFirst := open(t, config(dir, 2))
		id := first.Lanes()[0].ID()
		appendClicks(t, first, 0, 1, 10)
		closeFirst()
		equal(t, "segments", len(files(t, dir, ".segment")), 1)
		s, _ := open(t, config(dir, 2))
		isRun(t, read(t, s.Lanes()[0]), id, 1, 1, 10)
	})
	t.Run("leaves no room for clicks that come after it", func(t *testing.T) {
		s, closeSpool := open(t, config(t.TempDir(), 1))
		closeSpool()
		equal(t, "room", s.Append(0, click(1)), false)
		equal(t, "dropped", s.Dropped(), 1)
	})
}

func TestAppendDoesNotAllocate(t *testing.T) {
	cfg := config(t.TempDir(), 2)
	cfg.SegmentBytes, cfg.MaxBytes = 256<<10, 64<<20
	s, _ := open(t, cfg)
	c := click(1)
	hint := uint64(0)
	// With the changes of segments among them, each of which makes a file and a mapping: less than one for each click.
	if n := testing.AllocsPerRun(100_000, func() { s.Append(hint, c); hint++ }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	equal(t, "dropped", s.Dropped(), 0)
}

package spool_test

import (
	"bytes"
	"context"
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

	"golang.org/x/sys/unix"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/filelock"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

func TestSpool(t *testing.T) {
	t.Run("clicks are read in order with seqs from 1 across segments", func(t *testing.T) {
		dir := t.TempDir()
		s, _ := open(t, config(dir, 1))
		lane := s.Lanes()[0]
		appendClicks(t, s, 0, 1, 1000)
		if n := len(files(t, dir, ".segment")); n < 8 {
			t.Fatalf("%d segments are too few for this test", n)
		}
		isRun(t, read(t, lane), lane.ID(), 1, 1, 1000)
		testkit.Equal(t, "clicks of a second read", len(read(t, lane)), 0)
		appendClicks(t, s, 0, 1001, 1003)
		isRun(t, read(t, lane), lane.ID(), 1001, 1001, 1003)
	})
	t.Run("a read exceeds its limit by less than one click", func(t *testing.T) {
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
	t.Run("every field is kept both empty and at its limit", func(t *testing.T) {
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
			testkit.Equal(t, "room", s.Append(0, &c), true)
		}
		got := read(t, s.Lanes()[0])
		testkit.Equal(t, "clicks", len(got), len(clicks))
		for i, want := range clicks {
			if !bytes.Equal(schema.AppendClickBody(nil, &got[i]), schema.AppendClickBody(nil, &want)) {
				t.Errorf("click %d: got %+v, want %+v", i, got[i], want)
			}
		}
	})
	t.Run("the hint selects the lane", func(t *testing.T) {
		s, _ := open(t, config(t.TempDir(), 3))
		for link := range int64(30) {
			appendClicks(t, s, uint64(link), link, link)
		}
		for i, lane := range s.Lanes() {
			testkit.Equal(t, "lane", lane.ID().Number, uint32(i))
			for j, c := range read(t, lane) {
				testkit.Equal(t, "link", c.LinkID, int64(3*j+i))
			}
			testkit.Equal(t, "pending", lane.Pending(), 10)
		}
	})
	t.Run("acknowledged segments are removed", func(t *testing.T) {
		dir := t.TempDir()
		s, _ := open(t, config(dir, 1))
		lane := s.Lanes()[0]
		for link := int64(1); link < 20_000; link += 500 { // many times the size of the spool
			appendClicks(t, s, 0, link, link+499)
			testkit.Equal(t, "pending", s.Pending(), 500)
			read(t, lane)
			testkit.Equal(t, "pending after reading", s.Pending(), 500)
			testkit.Must(t, lane.Acknowledge())
			testkit.Equal(t, "pending after acknowledging", s.Pending(), 0)
		}
		if n := len(files(t, dir, ".segment")); n > 3 { // the active one, its spare, and a spare being created
			t.Fatalf("%d segments are left", n)
		}
	})
	t.Run("a missing file does not keep other segments", func(t *testing.T) {
		dir := t.TempDir()
		s, _ := open(t, config(dir, 1))
		appendClicks(t, s, 0, 1, 1000)
		testkit.Must(t, os.Remove(files(t, dir, ".segment")[0]))
		read(t, s.Lanes()[0])
		if err := s.Lanes()[0].Acknowledge(); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("error %v", err)
		}
		if n := len(files(t, dir, ".segment")); n > 3 {
			t.Fatalf("%d segments are left", n)
		}
	})
}

// full returns a spool of two lanes that has dropped its first click, all of hint 0, and the number of clicks in it.
func full(t *testing.T, dir string) (s *spool.Spool, log *testkit.Buffer, taken int64) {
	t.Helper()
	cfg := config(dir, 2)
	cfg.MaxBytes = 8 * smallest
	s, log, _ = openLogged(t, cfg)
	for s.Append(0, click(taken+1)) {
		taken++
		synctest.Wait() // for the next spare
	}
	return s, log, taken
}

func TestFullSpool(t *testing.T) {
	bubble := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	bubble("a click goes to another lane before it is dropped", func(t *testing.T) {
		s, _, taken := full(t, t.TempDir())
		first := int64(s.Lanes()[0].Pending())
		if s.Lanes()[1].Pending() == 0 {
			t.Fatal("the second lane has no click")
		}
		isRun(t, read(t, s.Lanes()[0]), s.Lanes()[0].ID(), 1, 1, first)
		isRun(t, read(t, s.Lanes()[1]), s.Lanes()[1].ID(), 1, first+1, taken)
	})
	bubble("dropped clicks are counted, and logged once per interval", func(t *testing.T) {
		s, log, _ := full(t, t.TempDir())
		testkit.Equal(t, "room", s.Append(1, click(0)), false)
		testkit.Equal(t, "dropped", s.Dropped(), 2)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		testkit.Equal(t, "reported", log.Contains("clicks are lost\" dropped=2 dropped_total=2"), true)
		testkit.Equal(t, "room", s.Append(1, click(0)), false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		testkit.Equal(t, "reported again", log.Contains("clicks are lost\" dropped=1 dropped_total=3"), true)
	})
	bubble("it keeps to its limit and has room after an acknowledgement", func(t *testing.T) {
		dir := t.TempDir()
		s, _, taken := full(t, dir)
		testkit.Equal(t, "segments", len(files(t, dir, ".segment")), 8)
		lane := s.Lanes()[0]
		pending := lane.Pending()
		read(t, lane)
		testkit.Must(t, lane.Acknowledge())
		time.Sleep(time.Second) // growRetry
		appendClicks(t, s, 0, taken+1, taken+50)
		isRun(t, read(t, lane), lane.ID(), pending+1, taken+1, taken+50)
	})
	bubble("it opens when it is full, and has room once recovered clicks are shipped", func(t *testing.T) {
		dir := t.TempDir()
		full(t, dir)
		cfg := config(copyDir(t, dir), 2)
		cfg.MaxBytes = 8 * smallest
		s, _ := open(t, cfg)
		testkit.Equal(t, "room", s.Append(0, click(0)), false)
		for _, lane := range s.Lanes()[:2] {
			testkit.Equal(t, "recovered", lane.Recovered(), true)
			read(t, lane)
			testkit.Must(t, lane.Acknowledge())
		}
		time.Sleep(time.Second)
		appendClicks(t, s, 0, 1, 50)
	})
}

func TestOpen(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Run("every invalid setting is in the error", func(t *testing.T) {
		_, err := spool.Open(spool.Config{Dir: t.TempDir()}, log)
		for _, flag := range []string{"-spool.max-bytes", "-spool.sync"} {
			if err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("%s is not in %v", flag, err)
			}
		}
	})
	t.Run("a small spool has small segments", func(t *testing.T) {
		for maxBytes, want := range map[int64]int64{1 << 30: 2 << 20, 128 << 20: 1 << 20, 1 << 20: 8 << 10,
			64 << 10: 4 << 10} {
			cfg := spool.DefaultConfig()
			cfg.Dir, cfg.MaxBytes, cfg.Lanes = t.TempDir(), maxBytes, 2
			s, closeIt := open(t, cfg)
			appendClicks(t, s, 0, 1, 1)
			files, err := filepath.Glob(filepath.Join(cfg.Dir, "*", "*.segment"))
			testkit.Must(t, err)
			info, err := os.Stat(files[0])
			testkit.Must(t, err)
			testkit.Equal(t, fmt.Sprint("bytes of a segment of ", maxBytes), info.Size(), want)
			closeIt()
		}
	})
	t.Run("a directory in use is refused and not changed", func(t *testing.T) {
		dir := t.TempDir()
		s, closeFirst := open(t, config(dir, 1))
		appendClicks(t, s, 0, 1, 10)
		_, err := spool.Open(config(dir, 1), log)
		if !errors.Is(err, filelock.ErrHeld) {
			t.Fatalf("error %v", err)
		}
		testkit.Equal(t, "folders", folders(t, dir), 1)
		isRun(t, read(t, s.Lanes()[0]), s.Lanes()[0].ID(), 1, 1, 10)
		closeFirst()
		again, _ := open(t, config(dir, 1))
		testkit.Equal(t, "pending", again.Pending(), 10)
	})
	t.Run("one of several concurrent processes succeeds", func(t *testing.T) {
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
					case !errors.Is(err, filelock.ErrHeld):
						t.Error(err)
					}
				}
			})
		}
		starting.Wait()
		testkit.Equal(t, "folders", folders(t, dir), 0)
	})
	t.Run("the error names the directory that cannot be created", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		testkit.Must(t, os.WriteFile(file, nil, 0o600))
		_, err := spool.Open(config(filepath.Join(file, "spool"), 1), log)
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Fatalf("error %v", err)
		}
	})
}

func TestOpenLeft(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	dir := t.TempDir() // is no spool yet
	if _, err := spool.OpenLeft(config(dir, 1), log); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	testkit.Equal(t, "files", len(files(t, dir, "")), 0)
	_, closeSpool := open(t, config(dir, 1))
	closeSpool()
	if _, err := spool.OpenLeft(spool.Config{Dir: dir}, log); err == nil ||
		!strings.Contains(err.Error(), "-spool.max-bytes") {
		t.Errorf("error %v", err)
	}
	s, err := spool.OpenLeft(config(dir, 1), log)
	testkit.Must(t, err)
	testkit.Equal(t, "lanes", len(s.Lanes()), 0)
	testkit.Must(t, s.Close())
}

func TestClose(t *testing.T) {
	t.Run("no click is left when nothing is pending", func(t *testing.T) {
		dir := t.TempDir()
		s, log, closeSpool := openLogged(t, config(dir, 2))
		appendClicks(t, s, 0, 1, 500)
		read(t, s.Lanes()[0])
		testkit.Must(t, s.Lanes()[0].Acknowledge())
		closeSpool()
		testkit.Equal(t, "files", files(t, dir, ""),
			[]string{filepath.Join(dir, "dropped"), filepath.Join(dir, "ended"), filepath.Join(dir, "lock")})
		testkit.Equal(t, "reported", log.String(), "")
		testkit.Equal(t, "folders", folders(t, dir), 0)
	})
	t.Run("pending clicks are left for the next process and spares are removed", func(t *testing.T) {
		dir := t.TempDir()
		first, closeFirst := open(t, config(dir, 2))
		id := first.Lanes()[0].ID()
		appendClicks(t, first, 0, 1, 10)
		closeFirst()
		testkit.Equal(t, "segments", len(files(t, dir, ".segment")), 1)
		s, _ := open(t, config(dir, 2))
		isRun(t, read(t, s.Lanes()[0]), id, 1, 1, 10)
	})
	t.Run("later clicks are dropped", func(t *testing.T) {
		s, closeSpool := open(t, config(t.TempDir(), 1))
		closeSpool()
		testkit.Equal(t, "room", s.Append(0, click(1)), false)
		testkit.Equal(t, "dropped", s.Dropped(), 1)
	})
}

// A power failure loses a file whose folder is not synced, even if the file itself is.
func TestFoldersReachTheDisk(t *testing.T) {
	cfg := config(t.TempDir(), 1)
	cfg.Sync = time.Hour
	s, topic, shipper := shipping(t, cfg)
	var synced []string
	s.OnFsync(func(path string) error {
		synced = append(synced, path)
		return nil
	})
	appendClicks(t, s, 0, 1, 300)
	testkit.Must(t, s.Sync())
	lane := s.Lanes()[0]
	folder := filepath.Join(cfg.Dir, lane.ID().Incarnation.String())
	testkit.Equal(t, "synced", synced, []string{folder})
	testkit.Eventually(t, "nothing is synced without a change", func() bool { // the next segment may still be created
		synced = nil
		testkit.Must(t, s.Sync())
		return len(synced) == 0
	})

	appendClicks(t, s, 0, 301, 600)
	fault := errors.New("input/output error")
	s.OnFsync(func(path string) error {
		synced = append(synced, path)
		return fault
	})
	testkit.Equal(t, "the error is the disk's", errors.Is(s.Sync(), fault), true)
	fault, synced = nil, nil
	testkit.Must(t, s.Sync())
	testkit.Equal(t, "synced after a failure", synced, []string{folder})

	topic.produce = func(context.Context, attempt) error { return stream.ErrRefused }
	synced = nil
	shipUntil(t, shipper, lane, func() bool { return s.Refused() > 0 })
	testkit.Equal(t, "synced when a click is set aside", synced, []string{filepath.Join(folder, "00.refused"), folder})
}

// No click is recorded in a folder whose name may not be on the disk.
func TestFolderThatDoesNotReachTheDisk(t *testing.T) {
	cfg := config(t.TempDir(), 1)
	cfg.Sync = time.Hour
	full, uptime, fault := true, time.Duration(0), errors.New("input/output error")
	cfg.OnSegment = func(bool) error {
		if full {
			return unix.ENOSPC
		}
		return nil
	}
	cfg.Uptime = func() time.Duration { return uptime }
	s, _ := open(t, cfg) // without a folder
	full = false
	synced := 0
	s.OnFsync(func(path string) error {
		if path == cfg.Dir {
			synced++
		}
		return fault
	})
	for try := range 3 {
		uptime += time.Minute
		for range 2 { // the second click does not wait for the disk
			testkit.Equal(t, "recorded", s.Append(0, click(1)), false)
		}
		testkit.Equal(t, "attempts to sync", synced, try+1)
		wantUsed(t, s, cfg.Dir)
	}
	fault = nil
	uptime += time.Minute
	appendClicks(t, s, 0, 2, 2)
	testkit.Equal(t, "attempts to sync", synced, 4)
}

func TestAppendDoesNotAllocate(t *testing.T) {
	cfg := config(t.TempDir(), 2)
	cfg.SegmentBytes, cfg.MaxBytes = 256<<10, 64<<20
	s, _ := open(t, cfg)
	c := click(1)
	hint := uint64(0)
	// A new segment allocates, but there are many clicks per segment: AllocsPerRun rounds down.
	if n := testing.AllocsPerRun(100_000, func() { s.Append(hint, c); hint++ }); n != 0 {
		t.Fatalf("%v allocations per click", n)
	}
	testkit.Equal(t, "dropped", s.Dropped(), 0)
}

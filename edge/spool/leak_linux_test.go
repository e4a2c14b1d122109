package spool_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// reserved returns how many bytes a file has on the disk, whatever it says its length is.
func reserved(tb testing.TB, path string) int64 {
	tb.Helper()
	info, err := os.Stat(path)
	must(tb, err)
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// mappings returns how many files of dir are mapped into this process.
func mappings(tb testing.TB, dir string) int {
	tb.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	must(tb, err)
	return strings.Count(string(maps), dir)
}

// handles returns how many files of dir this process has open.
func handles(tb testing.TB, dir string) (n int) {
	tb.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	must(tb, err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

// TestBlocksAreReserved is why a disk that fills up cannot interrupt an append: there is no page left to allocate.
func TestBlocksAreReserved(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir, 1)
	cfg.SegmentBytes, cfg.MaxBytes = 1<<20, 4<<20
	open(t, cfg)
	for _, path := range files(t, dir, ".segment") {
		if n := reserved(t, path); n < 1<<20 {
			t.Fatalf("%d bytes of %s are reserved", n, path)
		}
	}
}

func TestNothingLeaks(t *testing.T) {
	dir := t.TempDir()
	s, closeSpool := open(t, config(dir, 2))
	for range 20 {
		appendClicks(t, s, 0, 1, 500)
		read(t, s.Lanes()[0])
		must(t, s.Lanes()[0].Acknowledge())
	}
	appendClicks(t, s, 1, 1, 500) // some are pending at the end
	eventually(t, "one mapping for each file, and no file open but the lock", func() bool {
		return mappings(t, dir) == len(files(t, dir, ".segment")) && handles(t, dir) == 1
	})
	closeSpool()
	equal(t, "mappings", mappings(t, dir), 0)
	equal(t, "open files", handles(t, dir), 0)

	s, closeSpool = open(t, config(dir, 2))
	read(t, s.Lanes()[0])
	must(t, s.Lanes()[0].Acknowledge())
	closeSpool()
	equal(t, "mappings", mappings(t, dir), 0)
	equal(t, "open files", handles(t, dir), 0)
	equal(t, "segments", len(files(t, dir, ".segment")), 0)
}

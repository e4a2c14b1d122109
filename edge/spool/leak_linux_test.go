package spool_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"linkstream/schema/testkit"
)

// allocated returns the number of bytes that are allocated to a file.
func allocated(tb testing.TB, path string) int64 {
	tb.Helper()
	info, err := os.Stat(path)
	testkit.Must(tb, err)
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// mappings returns the number of files in dir that this process has mapped.
func mappings(tb testing.TB, dir string) int {
	tb.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	testkit.Must(tb, err)
	return strings.Count(string(maps), dir)
}

// handles returns the number of files in dir that this process has open.
func handles(tb testing.TB, dir string) (n int) {
	tb.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	testkit.Must(tb, err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

// TestBlocksAreAllocated checks that all blocks of a segment are allocated, so that an append never gets SIGBUS.
func TestBlocksAreAllocated(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir, 1)
	cfg.SegmentBytes, cfg.MaxBytes = 1<<20, 4<<20
	open(t, cfg)
	for _, path := range files(t, dir, ".segment") {
		if n := allocated(t, path); n < 1<<20 {
			t.Fatalf("%d bytes of %s are allocated", n, path)
		}
	}
}

func TestNothingLeaks(t *testing.T) {
	dir := t.TempDir()
	s, closeSpool := open(t, config(dir, 2))
	for range 20 {
		appendClicks(t, s, 0, 1, 500)
		read(t, s.Lanes()[0])
		testkit.Must(t, s.Lanes()[0].Acknowledge())
	}
	appendClicks(t, s, 1, 1, 500) // these stay pending
	testkit.Eventually(t, "one mapping per segment and of the number of dropped clicks, and no open file except the lock",
		func() bool {
			return mappings(t, dir) == len(files(t, dir, ".segment"))+1 && handles(t, dir) == 1
		})
	closeSpool()
	testkit.Equal(t, "mappings", mappings(t, dir), 0)
	testkit.Equal(t, "open files", handles(t, dir), 0)

	s, closeSpool = open(t, config(dir, 2))
	read(t, s.Lanes()[0])
	testkit.Must(t, s.Lanes()[0].Acknowledge())
	closeSpool()
	testkit.Equal(t, "mappings", mappings(t, dir), 0)
	testkit.Equal(t, "open files", handles(t, dir), 0)
	testkit.Equal(t, "segments", len(files(t, dir, ".segment")), 0)
}

package snapshot_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"linkstream/edge/resolve/snapshot"
	"linkstream/schema/testkit"
)

// handles returns the file descriptors of this process that lead to a path.
func handles(t *testing.T, path string) (fds []int) {
	t.Helper()
	open, err := filepath.Glob("/proc/self/fd/*")
	testkit.Must(t, err)
	for _, name := range open {
		if to, err := os.Readlink(name); err == nil && strings.TrimSuffix(to, " (deleted)") == path {
			fd, err := strconv.Atoi(filepath.Base(name))
			testkit.Must(t, err)
			fds = append(fds, fd)
		}
	}
	return fds
}

// TestRecordsThatCannotBeWritten puts the device /dev/full in the place of the file once it is open.
func TestRecordsThatCannotBeWritten(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		l, _ := f.open(t)
		l.Start(func() ([]snapshot.Record, []uint64) {
			return []snapshot.Record{{Kind: kindNote, Body: []byte("position")}}, nil
		})
		full, err := unix.Open("/dev/full", unix.O_RDWR|unix.O_CLOEXEC, 0)
		testkit.Must(t, err)
		testkit.Must(t, unix.Dup3(full, handles(t, f.path)[0], unix.O_CLOEXEC))
		testkit.Must(t, unix.Close(full))
		lost := l.Append(kindEntry, []byte("lost"))
		time.Sleep(snapshot.RetryInterval + 2*snapshot.FlushInterval)
		synctest.Wait()
		testkit.Equal(t, "failures", f.metrics.GetOrCreateCounter("linkstream_edge_snapshot_failures_total").Get(), 1)
		if since := l.SavedSince(); since <= lost {
			t.Errorf("entries since %d are to be trusted, and %d was lost", since, lost)
		}
		for _, body := range []string{"new", "newer"} { // each is written apart
			l.Append(kindEntry, []byte(body))
			time.Sleep(snapshot.FlushInterval + 1)
			synctest.Wait()
		}
		l.Close()
		testkit.Equal(t, "records", f.read(t), []string{"position", "2:new", "3:newer"})
	})
}

// A process has one file open, however often it is made anew.
func TestNothingLeaks(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		l, _ := f.open(t)
		l.Start(func() ([]snapshot.Record, []uint64) { return nil, nil })
		for range 50 {
			l.Append(kindEntry, []byte(strings.Repeat("x", snapshot.Slack/20)))
			time.Sleep(snapshot.FlushInterval + 1)
			synctest.Wait()
		}
		if n := f.metrics.GetOrCreateCounter("linkstream_edge_snapshot_rewrites_total").Get(); n < 2 {
			t.Errorf("%d new files are too few for this test", n)
		}
		testkit.Equal(t, "open files", len(handles(t, f.path))+len(handles(t, f.path+".new")), 1)
		l.Close()
		testkit.Equal(t, "open files after Close", len(handles(t, f.path)), 0)
	})
}

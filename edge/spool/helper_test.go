package spool_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// smallest is the minimum size of a segment, which holds about 120 of the clicks that tests append.
const smallest = 4 << 10

func config(dir string, lanes int) spool.Config {
	return spool.Config{Dir: dir, MaxBytes: 1 << 20, SegmentBytes: smallest, Lanes: lanes, Sync: time.Second}
}

// open opens a spool. close closes it, at the latest when the test ends.
func open(tb testing.TB, cfg spool.Config) (s *spool.Spool, close func()) {
	tb.Helper()
	s, _, close = openLogged(tb, cfg)
	return s, close
}

// openLogged is open that also returns the log.
func openLogged(tb testing.TB, cfg spool.Config) (s *spool.Spool, log *testkit.Buffer, close func()) {
	tb.Helper()
	log = new(testkit.Buffer)
	s, err := spool.Open(cfg, log.Logger())
	testkit.Must(tb, err)
	close = sync.OnceFunc(func() { testkit.Must(tb, s.Close()) })
	tb.Cleanup(close)
	return s, log, close
}

func click(link int64) *schema.Click {
	return &schema.Click{LinkID: link, ClickedAt: time.UnixMilli(1_800_000_000_000), UserAgent: []byte("agent")}
}

// appendClicks appends clicks on links first to last with a hint, and requires room for all.
func appendClicks(tb testing.TB, s *spool.Spool, hint uint64, first, last int64) {
	tb.Helper()
	for link := first; link <= last; link++ {
		if !s.Append(hint, click(link)) {
			tb.Fatalf("no room for the click on link %d", link)
		}
	}
}

// read returns the clicks of a lane that have not been read.
func read(tb testing.TB, l *spool.Lane) []schema.Click {
	tb.Helper()
	var batch stream.Batch
	n := l.Read(&batch, 1<<30)
	if n != batch.Len() {
		tb.Fatalf("Read returned %d, the batch has %d clicks", n, batch.Len())
	}
	return decode(tb, &batch)
}

func decode(tb testing.TB, batch *stream.Batch) []schema.Click {
	tb.Helper()
	clicks := make([]schema.Click, batch.Len())
	for i := range clicks {
		testkit.Must(tb, schema.DecodeClick(bytes.Clone(batch.Value(i)), &clicks[i]))
	}
	return clicks
}

// isRun requires clicks on links first to last, with the lane and seqs from firstSeq on.
func isRun(tb testing.TB, clicks []schema.Click, lane schema.Lane, firstSeq uint64, first, last int64) {
	tb.Helper()
	testkit.Equal(tb, "clicks", int64(len(clicks)), last-first+1)
	for i, c := range clicks {
		if c.Lane != lane || c.Seq != firstSeq+uint64(i) || c.LinkID != first+int64(i) {
			tb.Fatalf("click %d has lane %v, seq %d, link %d", i, c.Lane, c.Seq, c.LinkID)
		}
	}
}

// copyDir returns a copy of a spool's directory as a killed process would leave it. It leaves out spares that are
// removed concurrently.
func copyDir(tb testing.TB, dir string) string {
	tb.Helper()
	to := tb.TempDir()
	for _, path := range files(tb, dir, "") {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		testkit.Must(tb, err)
		path = filepath.Join(to, strings.TrimPrefix(path, dir))
		testkit.Must(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Must(tb, os.WriteFile(path, data, 0o600))
	}
	return to
}

// memoryDir returns a folder in memory, if the system has one, for tests that open many spools: each open calls fsync.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "linkstream-spool-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { testkit.Must(t, os.RemoveAll(dir)) })
	return dir
}

// files returns the paths of the files in dir whose name ends with suffix, sorted.
func files(tb testing.TB, dir, suffix string) (paths []string) {
	tb.Helper()
	testkit.Must(tb, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed concurrently
		}
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, suffix) {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// wantUsed requires that the spool counts the files with clicks and its spares towards its limit, once no file is being
// created.
func wantUsed(tb testing.TB, s *spool.Spool, dir string) {
	tb.Helper()
	testkit.Succeeds(tb, func() error {
		var size int64
		for _, suffix := range []string{".segment", ".damaged"} {
			for _, path := range files(tb, dir, suffix) {
				info, err := os.Stat(path)
				testkit.Must(tb, err)
				size += info.Size()
			}
		}
		return testkit.Mismatch("bytes used", s.Used(), size)
	})
}

// folders returns the number of folders in dir.
func folders(tb testing.TB, dir string) int {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(tb, err)
	return len(slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() }))
}

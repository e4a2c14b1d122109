package spool_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
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
)

// smallest is the smallest segment; it holds about 120 of the clicks that tests append.
const smallest = 4 << 10

func config(dir string, lanes int) spool.Config {
	return spool.Config{Dir: dir, MaxBytes: 1 << 20, SegmentBytes: smallest, Lanes: lanes, Sync: time.Second}
}

// open opens a spool. It is closed by the function that comes with it, at the latest when the test ends.
func open(tb testing.TB, cfg spool.Config) (s *spool.Spool, close func()) {
	tb.Helper()
	s, _, close = openLogged(tb, cfg)
	return s, close
}

// openLogged is like open and keeps what is logged.
func openLogged(tb testing.TB, cfg spool.Config) (s *spool.Spool, log *logBuffer, close func()) {
	tb.Helper()
	log = new(logBuffer)
	s, err := spool.Open(cfg, slog.New(slog.NewTextHandler(log, nil)))
	must(tb, err)
	close = sync.OnceFunc(func() { must(tb, s.Close()) })
	tb.Cleanup(close)
	return s, log, close
}

// logBuffer is a buffer that goroutines may write to.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) contains(s string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.buf.String(), s)
}

func click(link int64) *schema.Click {
	return &schema.Click{LinkID: link, ClickedAt: time.UnixMilli(1_800_000_000_000), UserAgent: []byte("agent")}
}

// appendClicks appends clicks on links first to last to the lane of hint, and requires room for all of them.
func appendClicks(tb testing.TB, s *spool.Spool, hint uint64, first, last int64) {
	tb.Helper()
	for link := first; link <= last; link++ {
		if !s.Append(hint, click(link)) {
			tb.Fatalf("no room for the click on link %d", link)
		}
	}
}

// read returns all clicks of a lane that have not been read.
func read(tb testing.TB, l *spool.Lane) []schema.Click {
	tb.Helper()
	var batch stream.Batch
	n := l.Read(&batch, 1<<30)
	if n != batch.Len() {
		tb.Fatalf("Read says %d clicks, the batch has %d", n, batch.Len())
	}
	return decode(tb, &batch)
}

func decode(tb testing.TB, batch *stream.Batch) []schema.Click {
	tb.Helper()
	clicks := make([]schema.Click, batch.Len())
	for i := range clicks {
		must(tb, schema.DecodeClick(bytes.Clone(batch.Value(i)), &clicks[i]))
	}
	return clicks
}

// isRun requires that clicks are those on links first to last, recorded in the lane with seqs from firstSeq on.
func isRun(tb testing.TB, clicks []schema.Click, lane schema.Lane, firstSeq uint64, first, last int64) {
	tb.Helper()
	equal(tb, "clicks", int64(len(clicks)), last-first+1)
	for i, c := range clicks {
		if c.Lane != lane || c.Seq != firstSeq+uint64(i) || c.LinkID != first+int64(i) {
			tb.Fatalf("click %d of the run is %v %d on link %d", i, c.Lane, c.Seq, c.LinkID)
		}
	}
}

// copyDir copies a spool's directory as it is at this instant and returns the copy: what a killed process leaves. A spare
// that is removed meanwhile is left out.
func copyDir(tb testing.TB, dir string) string {
	tb.Helper()
	to := tb.TempDir()
	for _, path := range files(tb, dir, "") {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(tb, err)
		path = filepath.Join(to, strings.TrimPrefix(path, dir))
		must(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		must(tb, os.WriteFile(path, data, 0o600))
	}
	return to
}

// memoryDir returns a folder in memory where the system has one, for tests that open many spools: each syncs its folder.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "linkstream-spool-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// files returns the paths of the files in dir whose name ends with suffix, sorted.
func files(tb testing.TB, dir, suffix string) (paths []string) {
	tb.Helper()
	must(tb, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed while the folder was read
		}
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, suffix) {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// folders returns how many incarnations have a folder in dir.
func folders(tb testing.TB, dir string) int {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	must(tb, err)
	return len(slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() }))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	if err := within(ok); err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// within polls until ok, for ten seconds at most.
func within(ok func() bool) error {
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("not within ten seconds")
		}
	}
	return nil
}

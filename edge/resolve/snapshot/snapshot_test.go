package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"linkstream/edge/resolve/snapshot"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const kind = 7 // of the records in these tests

// cache is the entries of an edge, and its snapshot.
type cache struct {
	dir      string
	log      *testkit.Buffer
	metrics  *metrics.Set
	snapshot *snapshot.Snapshot
	dropped  []string // in the list that was restored

	mu      sync.Mutex
	entries map[string]string
}

// open opens the snapshot in a folder, with the entries that it stands for.
func open(t testing.TB, dir string) *cache {
	t.Helper()
	c := &cache{dir: dir, log: new(testkit.Buffer), metrics: metrics.NewSet(), entries: map[string]string{}}
	dropped := func(key string) { c.dropped = append(c.dropped, key) }
	record := func(k byte, body []byte) {
		key, value, _ := strings.Cut(string(body), "=")
		testkit.Equal(t, "kind", k, kind)
		if !slices.Contains(c.dropped, key) {
			c.entries[key] = value
		}
	}
	c.snapshot = snapshot.Open(c.path(), dropped, record, c.metrics, c.log.Logger())
	t.Cleanup(c.snapshot.Kill)
	return c
}

func (c *cache) path() string { return filepath.Join(c.dir, "snapshot") }

// start starts to write dumps, each of which ends with a call of while.
func (c *cache) start(while func() error) {
	c.snapshot.Start(func(w *snapshot.Writer) error {
		c.mu.Lock()
		entries := maps.Clone(c.entries)
		c.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if err := w.Add(kind, []byte(key+"="+entries[key])); err != nil {
				return err
			}
		}
		return while()
	})
}

// nothing is for start.
func nothing() error { return nil }

func (c *cache) put(key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[key] = value
}

// drop drops an entry, and waits until it is in the list.
func (c *cache) drop(key string) {
	c.mu.Lock()
	delete(c.entries, key)
	c.mu.Unlock()
	c.snapshot.Add(key)
	wait(0)
}

// copied returns a copy of the files, as a process finds them that begins after kill -9 at this moment.
func (c *cache) copied(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.CopyFS(dir, os.DirFS(c.dir)))
	return dir
}

// restored returns the entries that the files in a folder stand for.
func restored(t testing.TB, dir string) map[string]string {
	t.Helper()
	c := open(t, dir)
	c.snapshot.Kill()
	return c.entries
}

// wait waits for d, in a bubble, and for what happens then.
func wait(d time.Duration) { time.Sleep(d + time.Millisecond) }

// list returns the path of the list.
func (c *cache) list(t testing.TB) string {
	t.Helper()
	paths, err := filepath.Glob(c.path() + ".*")
	testkit.Must(t, err)
	if len(paths) != 1 {
		t.Fatalf("lists: %q", paths)
	}
	return paths[0]
}

func (c *cache) count(name string) uint64 {
	return c.metrics.GetOrCreateCounter("linkstream_edge_snapshot_" + name + "_total").Get()
}

// closed returns a folder with the snapshot of a process that has stopped.
func closed(t testing.TB, entries map[string]string) (dir string) {
	t.Helper()
	c := open(t, t.TempDir())
	c.entries = entries
	c.start(nothing)
	c.snapshot.Close()
	c.snapshot.Close()
	return c.dir
}

// want requires that the files in a folder stand for these entries.
func want(t testing.TB, dir string, entries map[string]string) {
	t.Helper()
	testkit.Equal(t, "entries", restored(t, dir), entries)
}

func TestEntriesAreRestored(t *testing.T) {
	t.Run("after a stop", func(t *testing.T) {
		entries := map[string]string{"a": "1", "b": "", "l": strings.Repeat("x", snapshot.MaxBody-2)}
		for i := range 30_000 { // several pieces
			entries[fmt.Sprint("many", i)] = strings.Repeat("y", i%97)
		}
		dir := closed(t, maps.Clone(entries))
		for range 2 { // reading changes nothing
			if !maps.Equal(restored(t, dir), entries) {
				t.Error("other entries")
			}
		}
		info, err := os.Stat(filepath.Join(dir, "snapshot"))
		testkit.Must(t, err)
		testkit.Equal(t, "mode", info.Mode(), 0o600)
	})
	t.Run("without entries that are too long", func(t *testing.T) {
		dir := closed(t, map[string]string{"a": "1", "l": strings.Repeat("x", snapshot.MaxBody-1)})
		want(t, dir, map[string]string{"a": "1"})
	})
	t.Run("after a kill, as they were in the last dump", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, t.TempDir())
			c.start(nothing)
			c.put("a", "1")
			wait(snapshot.DumpInterval)
			c.put("b", "2")
			want(t, c.copied(t), map[string]string{"a": "1"})
			wait(snapshot.DumpInterval)
			want(t, c.copied(t), map[string]string{"a": "1", "b": "2"})
			testkit.Equal(t, "dumps", c.count("dumps"), 2)
			testkit.Equal(t, "log", c.log.String(), "")
			c.list(t) // there is one
		})
	})
}

func TestDroppedEntriesAreNotRestored(t *testing.T) {
	begin := func(t *testing.T) *cache {
		c := open(t, closed(t, map[string]string{"a": "1", "b": "2"}))
		c.start(nothing)
		return c
	}
	t.Run("after a kill at any time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := begin(t)
			c.drop("a")
			want(t, c.copied(t), map[string]string{"b": "2"})
		})
	})
	t.Run("after two processes that were killed before their first dump", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := begin(t)
			c.drop("a")
			again := open(t, c.copied(t))
			again.start(nothing)
			again.drop("b")
			want(t, again.copied(t), map[string]string{})
		})
	})
	t.Run("until a dump has them again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := begin(t)
			c.drop("a")
			c.put("a", "new")
			wait(snapshot.DumpInterval)
			want(t, c.copied(t), map[string]string{"a": "new", "b": "2"})
		})
	})
	t.Run("after everything was dropped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := begin(t)
			c.snapshot.Invalidate()
			wait(0)
			want(t, c.copied(t), map[string]string{})
			wait(snapshot.DumpInterval)
			want(t, c.copied(t), map[string]string{"a": "1", "b": "2"}) // they are in the cache again
		})
	})
	t.Run("if they were dropped just before a stop whose dump fails", func(t *testing.T) {
		c := open(t, closed(t, map[string]string{"a": "1", "b": "2"}))
		c.start(func() error { return errors.New("no more entries") })
		c.snapshot.Add("a")
		c.snapshot.Close()
		want(t, c.dir, map[string]string{"b": "2"})
	})
}

// TestKillAtAnyPoint kills a process that drops entries before, while and after it writes a dump. No entry comes back,
// and no other one is lost.
func TestKillAtAnyPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, closed(t, map[string]string{"before": "1", "while": "1", "after": "1", "stays": "1"}))
		entries := map[string]string{"before": "1", "while": "1", "after": "1", "stays": "1"}
		drop := func(key string) {
			c.drop(key)
			delete(entries, key)
		}
		check := func() {
			t.Helper()
			want(t, c.copied(t), entries)
		}
		c.start(func() error {
			check() // there are two lists, and a part of the new dump
			drop("while")
			check()
			return nil
		})
		drop("before")
		check()
		list := c.list(t)
		content, err := os.ReadFile(list)
		testkit.Must(t, err)
		wait(snapshot.DumpInterval + time.Second)
		testkit.Equal(t, "dumps", c.count("dumps"), 1)
		testkit.Must(t, os.WriteFile(list, content, 0o600)) // as if the kill had come before it was removed
		check()
		testkit.Must(t, os.Remove(list))
		drop("after")
		check()
	})
}

// A dump that fails leaves the old one, whose list goes on.
func TestDumpThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, closed(t, map[string]string{"a": "1", "b": "2", "c": "3"}))
		var fails atomic.Bool
		fails.Store(true)
		c.start(func() error {
			if fails.Load() {
				c.drop("a")
				return errors.New("no more entries")
			}
			return nil
		})
		wait(snapshot.DumpInterval + time.Second)
		testkit.Equal(t, "failures", c.count("failures"), 1)
		testkit.Equal(t, "reported", c.log.Contains("no more entries"), true)
		want(t, c.copied(t), map[string]string{"b": "2", "c": "3"})
		c.drop("b")
		want(t, c.copied(t), map[string]string{"c": "3"})
		fails.Store(false)
		c.put("d", "4")
		wait(snapshot.DumpInterval)
		want(t, c.copied(t), map[string]string{"c": "3", "d": "4"})
	})
}

// A dump is not used if everything is dropped while it is written.
func TestInvalidWhileItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, closed(t, map[string]string{"a": "1"}))
		c.start(func() error {
			c.snapshot.Invalidate()
			wait(0)
			return nil
		})
		wait(snapshot.DumpInterval + time.Second)
		want(t, c.copied(t), map[string]string{})
		testkit.Equal(t, "log", c.log.String(), "")
		files, err := os.ReadDir(c.dir)
		testkit.Must(t, err)
		testkit.Equal(t, "files", len(files), 0)
	})
}

func TestStopEndsADump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, t.TempDir())
		for i := range 1000 {
			c.put(fmt.Sprint(i), strings.Repeat("x", 100_000))
		}
		c.start(nothing)
		time.Sleep(snapshot.DumpInterval + 100*time.Millisecond) // a dump of 100 MB takes longer
		testkit.Equal(t, "dumps", c.count("dumps"), 0)
		begin := time.Now()
		c.snapshot.Close()
		if pauses := time.Since(begin); pauses > 50*time.Millisecond {
			t.Errorf("Close pauses for %v", pauses)
		}
		testkit.Equal(t, "dumps", c.count("dumps"), 1)
		testkit.Equal(t, "failures", c.count("failures"), 0)
		testkit.Equal(t, "entries", len(restored(t, c.dir)), 1000)
	})
}

// TestDamage damages either file in every way that concerns one byte or the length.
func TestDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, closed(t, map[string]string{"a": "1", "b": "2"}))
		c.start(nothing)
		c.drop("a")
		want(t, c.copied(t), map[string]string{"b": "2"})
		refuses := func(what, path string, content []byte) {
			t.Helper()
			dir := c.copied(t)
			testkit.Must(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), content, 0o600))
			again := open(t, dir)
			again.snapshot.Kill()
			files, err := os.ReadDir(dir)
			testkit.Must(t, err)
			if len(again.entries) > 0 || len(files) > 0 || !again.log.Contains("is not used") {
				t.Fatalf("%s: entries %v, files %v, log %q", what, again.entries, files, again.log)
			}
		}
		generation := strings.TrimPrefix(filepath.Ext(c.list(t)), ".")
		for _, path := range []string{c.path(), c.list(t)} {
			whole, err := os.ReadFile(path)
			testkit.Must(t, err)
			for at := range whole {
				for _, flip := range []byte{1, 0x80, 0xff} {
					damaged := bytes.Clone(whole)
					damaged[at] ^= flip
					refuses(fmt.Sprint("damaged byte ", at), path, damaged)
				}
				// A list that ends between two keys is a shorter one. Kill -9 does not shorten a file.
				if at != len(snapshot.EncodeList(generation)) || path == c.path() {
					refuses(fmt.Sprint("length ", at), path, whole[:at])
				}
			}
			refuses("zeros that a power failure has left", path, append(bytes.Clone(whole), 0, 0, 0, 0, 0, 0, 0, 0))
		}
		refuses("the list of another dump", c.list(t), snapshot.EncodeList("0123456789abcdef"))
		refuses("the file of release 1.0.0", c.path(), []byte("linksnap\x01\x00\x00\x00\xaa\xbb\xcc\xdd and blocks"))
		testkit.Must(t, os.Remove(c.list(t)))
		want(t, c.copied(t), map[string]string{})
	})
}

// TestFullDisk puts the device /dev/full, which has no room for anything, in the place of files.
func TestFullDisk(t *testing.T) {
	t.Run("the old dump stays while there is no room for a new one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, closed(t, map[string]string{"a": "1", "b": "2"}))
			testkit.Must(t, os.Symlink("/dev/full", c.path()+".new"))
			c.start(nothing)
			c.drop("a")
			wait(snapshot.DumpInterval)
			testkit.Equal(t, "reported", c.log.Contains("no space left on device"), true)
			testkit.Equal(t, "failures", c.count("failures"), 1)
			want(t, c.copied(t), map[string]string{"b": "2"})
		})
	})
	t.Run("a dump is removed if a key cannot be appended to its list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, closed(t, map[string]string{"a": "1", "b": "2"}))
			full := filepath.Join(t.TempDir(), "full") // a name that may be removed
			testkit.Must(t, os.Symlink("/dev/full", full))
			testkit.Must(t, snapshot.SetList(c.snapshot, full))
			c.start(nothing)
			c.drop("a")
			testkit.Equal(t, "failures", c.count("failures"), 1)
			want(t, c.copied(t), map[string]string{})
			wait(snapshot.DumpInterval) // there is room now
			want(t, c.copied(t), map[string]string{"b": "2"})
		})
	})
}

// A list that becomes long ends with a dump, and one that becomes longer yet without one.
func TestLongList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, closed(t, map[string]string{"a": "1"}))
		var fails atomic.Bool
		c.start(func() error {
			if fails.Load() {
				return errors.New("no more entries")
			}
			return nil
		})
		drop := func(size int) {
			const key = 1 << 10
			for n := 0; n < size; n += key {
				c.snapshot.Add(strings.Repeat("x", key))
			}
			wait(0)
		}
		drop(snapshot.ListBytes / 2)
		testkit.Equal(t, "dumps", c.count("dumps"), 0)
		drop(snapshot.ListBytes / 2)
		testkit.Equal(t, "dumps", c.count("dumps"), 1)
		want(t, c.copied(t), map[string]string{"a": "1"})
		fails.Store(true)
		drop(snapshot.MaxListBytes)
		testkit.Equal(t, "reported", c.log.Contains("dropped keys were lost"), true)
		want(t, c.copied(t), map[string]string{})
		fails.Store(false)
		wait(snapshot.DumpInterval)
		want(t, c.copied(t), map[string]string{"a": "1"})
	})
}

func FuzzDump(f *testing.F) {
	whole := snapshot.EncodeDump(42, []byte("\x01position"), []byte("\x03link"))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(snapshot.EncodeDump(0))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		var records [][]byte
		generation, err := snapshot.ReadDump(bytes.NewReader(content), func(kind byte, body []byte) {
			records = append(records, append([]byte{kind}, body...))
		})
		// What is accepted is what was written.
		if err == nil && !bytes.Equal(snapshot.EncodeDump(generation, records...), content) {
			t.Errorf("%q has %d records", content, len(records))
		}
	})
}

func FuzzDropped(f *testing.F) {
	whole := snapshot.EncodeList("0123456789abcdef", "link/1/abc", "")
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, err := snapshot.ReadList(content)
		if err == nil && !bytes.Equal(snapshot.EncodeList(keys...), content) {
			t.Errorf("%q has %q", content, keys)
		}
	})
}

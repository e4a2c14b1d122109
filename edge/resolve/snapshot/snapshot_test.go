package snapshot_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"linkstream/edge/resolve/snapshot"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	kindEntry = snapshot.Entry | 1
	kindNote  = 2
)

// file is a snapshot on disk.
type file struct {
	path    string
	log     *testkit.Buffer
	metrics *metrics.Set
}

func newFile(t *testing.T) *file {
	t.Helper()
	return &file{path: filepath.Join(t.TempDir(), "snapshot"), log: new(testkit.Buffer)}
}

// open opens the snapshot and returns its records: "1:body" for entries, "body" for others.
func (f *file) open(t testing.TB) (l *snapshot.Log, records []string) {
	t.Helper()
	f.metrics = metrics.NewSet()
	l, err := snapshot.Open(f.path, func(r snapshot.Record) error {
		text := string(r.Body)
		if r.Kind == kindEntry {
			text = fmt.Sprintf("%d:%s", r.Number, text)
		}
		records = append(records, text)
		return nil
	}, f.metrics, f.log.Logger())
	testkit.Must(t, err)
	return l, records
}

// read returns the records.
func (f *file) read(t testing.TB) []string {
	t.Helper()
	l, records := f.open(t)
	l.Close()
	return records
}

// add appends entries, in a block of their own.
func (f *file) add(t testing.TB, bodies ...string) {
	t.Helper()
	l, _ := f.open(t)
	for _, body := range bodies {
		l.Append(kindEntry, []byte(body))
	}
	l.Close()
}

func (f *file) bytes(t testing.TB) []byte {
	t.Helper()
	content, err := os.ReadFile(f.path)
	testkit.Must(t, err)
	return content
}

func (f *file) write(t testing.TB, content []byte) {
	t.Helper()
	testkit.Must(t, os.WriteFile(f.path, content, 0o600))
}

func TestRecordsAreReadAgain(t *testing.T) {
	f := newFile(t)
	testkit.Equal(t, "records of a new file", len(f.read(t)), 0)
	f.add(t, "a", "", strings.Repeat("long", 4000))
	l, _ := f.open(t)
	testkit.Equal(t, "number of a note", l.Append(kindNote, []byte("note")), 0)
	testkit.Equal(t, "number of the next entry", l.Append(kindEntry, []byte("b")), 4)
	l.Close()
	testkit.Equal(t, "records", f.read(t), []string{"1:a", "2:", "3:" + strings.Repeat("long", 4000), "note", "4:b"})
	testkit.Equal(t, "log", f.log.String(), "")
	info, err := os.Stat(f.path)
	testkit.Must(t, err)
	testkit.Equal(t, "mode", info.Mode(), 0o600)
	testkit.Equal(t, "size", f.metrics.GetOrCreateGauge("linkstream_edge_snapshot_bytes", nil).Get(), float64(info.Size()))
}

// A process that is killed while it writes a new file leaves it.
func TestUnfinishedFileIsRemoved(t *testing.T) {
	f := newFile(t)
	f.add(t, "a")
	testkit.Must(t, os.WriteFile(f.path+".new", f.bytes(t), 0o600))
	testkit.Equal(t, "records", f.read(t), []string{"1:a"})
	_, err := os.Stat(f.path + ".new")
	testkit.Equal(t, "removed", os.IsNotExist(err), true)
}

func TestLongestRecordsAreReadAgain(t *testing.T) {
	for length := snapshot.MaxBlock - 16; length <= snapshot.MaxBlock; length++ {
		f := newFile(t)
		l, _ := f.open(t)
		l.Append(kindNote, []byte("before"))
		body := strings.Repeat("x", length)
		l.Append(kindEntry, []byte(body))
		taken := l.SavedSince() == 0 // otherwise it was discarded
		l.Close()
		if taken != (length <= snapshot.MaxBlock-5) { // its kind, its length and its number
			t.Errorf("an entry of %d bytes is taken: %t", length, taken)
		}
		if records := f.read(t); taken && !slices.Equal(records, []string{"before", "1:" + body}) {
			t.Errorf("%d records after one of %d bytes", len(records), length)
		}
	}
}

func TestManyRecordsAreReadAgain(t *testing.T) {
	f := newFile(t)
	var bodies, want []string
	for i := range 5000 { // several blocks
		bodies = append(bodies, strings.Repeat("x", i%97))
		want = append(want, fmt.Sprintf("%d:%s", i+1, bodies[i]))
	}
	f.add(t, bodies...)
	if !slices.Equal(f.read(t), want) {
		t.Error("the records are others than those that were appended")
	}
}

// TestDamage damages a file in every way that concerns one byte.
func TestDamage(t *testing.T) {
	f := newFile(t)
	f.add(t, "a", "b")
	f.add(t, "c")
	f.add(t, "d", "e")
	whole, all := f.bytes(t), f.read(t)
	prefixes := [][]string{nil, all[:2], all[:3], all}
	check := func(t *testing.T, what string, at int) {
		t.Helper()
		before := f.read(t)
		sound := slices.IndexFunc(prefixes[:3], func(p []string) bool { return slices.Equal(p, before) }) >= 0
		if !sound || !f.log.Contains("not used to its end") {
			t.Fatalf("%s %d: records %q, log %q", what, at, before, f.log.String())
		}
		f.add(t, "new")
		if after := f.read(t); len(after) != len(before)+1 || !slices.Equal(after[:len(before)], before) {
			t.Fatalf("%s %d: records %q, and then %q", what, at, before, after)
		}
	}
	for at := range whole {
		for _, flip := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(whole)
			damaged[at] ^= flip
			f.write(t, damaged)
			f.log = new(testkit.Buffer)
			check(t, "damaged byte", at)
		}
		f.write(t, whole[:at])
		f.log = new(testkit.Buffer)
		if at == 0 || slices.Contains(blockEnds(whole), at) { // as if the rest had never been written
			continue
		}
		check(t, "length", at)
	}
	f.write(t, append(bytes.Clone(whole), make([]byte, 4096)...)) // what some file systems leave after a power failure
	testkit.Equal(t, "records before zeros", f.read(t), all)
	testkit.Equal(t, "size after zeros", len(f.bytes(t)), len(whole))
}

// blockEnds returns where the header of a file and its blocks end.
func blockEnds(content []byte) (ends []int) {
	for end := 16; end <= len(content); {
		ends = append(ends, end)
		if end+8 > len(content) {
			break
		}
		end += 8 + int(content[end+4]) + int(content[end+5])<<8
	}
	return ends
}

func TestAnotherVersionIsNotRead(t *testing.T) {
	f := newFile(t)
	f.add(t, "a")
	f.write(t, snapshot.WithVersion(f.bytes(t), 2))
	testkit.Equal(t, "records", len(f.read(t)), 0)
	if !f.log.Contains("the format is that of another release: version 2, not 1") {
		t.Errorf("log %q", f.log.String())
	}
	f.add(t, "b")
	testkit.Equal(t, "records", f.read(t), []string{"1:b"})
}

func TestReadersRefuseRecords(t *testing.T) {
	f := newFile(t)
	f.add(t, "a")
	f.add(t, "b", "unknown", "c")
	l, err := snapshot.Open(f.path, func(r snapshot.Record) error {
		if string(r.Body) == "unknown" {
			return fmt.Errorf("kind of another release")
		}
		return nil
	}, metrics.NewSet(), f.log.Logger())
	testkit.Must(t, err)
	testkit.Equal(t, "first number to be trusted", l.SavedSince(), 4) // b was passed on, and is not in the file any more
	testkit.Equal(t, "next number", l.Append(kindEntry, []byte("d")), 4)
	l.Close()
	testkit.Equal(t, "records", f.read(t), []string{"1:a", "4:d"})
}

// within runs f in a bubble, where time passes at once.
func within(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestWritesInTheBackground(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		l, _ := f.open(t)
		l.Start(func() ([]snapshot.Record, []uint64) { return nil, nil })
		l.Append(kindEntry, []byte("a"))
		time.Sleep(snapshot.FlushInterval + 1)
		synctest.Wait()
		killed := *f // what a process finds that begins after kill -9
		killed.path = filepath.Join(t.TempDir(), "copy")
		killed.write(t, f.bytes(t))
		testkit.Equal(t, "records", killed.read(t), []string{"1:a"})
		l.Close()
		l.Close()
	})
}

func TestNewFile(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		l, _ := f.open(t)
		kept := []uint64{}
		l.Start(func() ([]snapshot.Record, []uint64) {
			return []snapshot.Record{{Kind: kindNote, Body: []byte("position")}}, slices.Clone(kept)
		})
		body := strings.Repeat("x", 1000)
		const entries = 3000 // of which two thirds are not cached any more
		largest := 0
		for range entries {
			if n := l.Append(kindEntry, []byte(body)); n%3 == 0 {
				kept = append([]uint64{n}, kept...) // the order does not matter
			}
			l.Append(kindNote, []byte("dropped"))
			time.Sleep(snapshot.FlushInterval + 1)
			synctest.Wait()
			info, err := os.Stat(f.path)
			testkit.Must(t, err)
			largest = max(largest, int(info.Size()))
		}
		l.Close()
		if n := f.metrics.GetOrCreateCounter("linkstream_edge_snapshot_rewrites_total").Get(); n < 1 || n > 5 {
			t.Errorf("%d new files", n)
		}
		records := f.read(t)
		testkit.Equal(t, "first record", records[0], "position")
		for _, n := range kept {
			if !slices.Contains(records, fmt.Sprintf("%d:%s", n, body)) {
				t.Fatalf("entry %d is not in the file", n)
			}
		}
		if limit := 2*entries/3*1000*11/10 + snapshot.Slack; largest > limit {
			t.Errorf("the file had %d bytes, more than %d", largest, limit)
		}
		testkit.Equal(t, "log", f.log.String(), "")
	})
}

// TestFullDisk puts the device /dev/full, which has no room for anything, in the place of files.
func TestFullDisk(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		testkit.Must(t, os.Symlink("/dev/full", f.path))
		l, records := f.open(t)
		testkit.Equal(t, "records", len(records), 0)
		testkit.Must(t, os.Symlink("/dev/full", f.path+".new"))
		lost := l.Append(kindEntry, []byte("lost"))
		l.Start(func() ([]snapshot.Record, []uint64) {
			return []snapshot.Record{{Kind: kindNote, Body: []byte("position")}}, []uint64{lost}
		})
		time.Sleep(snapshot.RetryInterval + snapshot.FlushInterval)
		synctest.Wait()
		if n := strings.Count(f.log.String(), "no space left on device"); n != 1 { // that of the new file
			t.Errorf("%d failures for lack of space in %q", n, f.log.String())
		}
		if since := l.SavedSince(); since <= lost {
			t.Errorf("entries since %d are to be trusted, and %d was lost", since, lost)
		}
		time.Sleep(snapshot.RetryInterval + snapshot.FlushInterval) // there is room now
		synctest.Wait()
		l.Append(kindEntry, []byte("saved"))
		l.Close()
		testkit.Equal(t, "records", f.read(t), []string{"position", "2:saved"})
	})
}

// TestDiscardedRecordsStayAway fills the memory for records that wait for the disk. What is discarded then is true no more when a new file
// is made, and must not come back behind newer records.
func TestDiscardedRecordsStayAway(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		l, _ := f.open(t)
		body := bytes.Repeat([]byte("x"), snapshot.MaxBlock/2)
		last := uint64(0)
		for l.SavedSince() == 0 {
			if last = l.Append(kindEntry, body); last > 10_000 {
				t.Fatal("the memory has no bound")
			}
		}
		testkit.Equal(t, "number of an entry that is discarded", l.Append(kindEntry, body), last+1)
		l.Start(func() ([]snapshot.Record, []uint64) {
			return []snapshot.Record{{Kind: kindNote, Body: []byte("position")}}, nil
		})
		time.Sleep(snapshot.FlushInterval + 1)
		synctest.Wait()
		if since := l.SavedSince(); since <= last+1 {
			t.Errorf("entries since %d are to be trusted, and %d was discarded", since, last+1)
		}
		l.Append(kindEntry, []byte("new"))
		l.Close()
		testkit.Equal(t, "records", f.read(t), []string{"position", fmt.Sprintf("%d:new", last+2)})
	})
}

// The old file stays while there is no room for a new one.
func TestNewFileThatCannotBeMade(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		l, _ := f.open(t)
		testkit.Must(t, os.Mkdir(f.path+".new", 0o700))
		testkit.Must(t, os.WriteFile(f.path+".new/file", nil, 0o600)) // so that the folder cannot be removed
		l.Start(func() ([]snapshot.Record, []uint64) { return nil, nil })
		var want []string
		for len(want) < 30 { // which is more than a file may grow
			body := strings.Repeat("x", snapshot.Slack/20)
			want = append(want, fmt.Sprintf("%d:%s", l.Append(kindEntry, []byte(body)), body))
			time.Sleep(snapshot.FlushInterval + 1)
			synctest.Wait()
		}
		testkit.Equal(t, "failures", f.metrics.GetOrCreateCounter("linkstream_edge_snapshot_failures_total").Get(), 1)
		testkit.Equal(t, "first number to be trusted", l.SavedSince(), 0)
		l.Close()
		testkit.Must(t, os.RemoveAll(f.path+".new"))
		if !slices.Equal(f.read(t), want) {
			t.Error("the records are others than those that were appended")
		}
	})
}

// Entries that the disk has lost are saved again when they are looked up.
func TestFileThatBecomesUnreadable(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		l, _ := f.open(t)
		l.Start(func() ([]snapshot.Record, []uint64) { return nil, []uint64{1, 2, 3} })
		add := func(body string) {
			l.Append(kindEntry, []byte(body))
			time.Sleep(snapshot.FlushInterval + 1)
			synctest.Wait()
		}
		add("sound")
		add("damaged")
		add("behind it")
		content := f.bytes(t)
		content[bytes.Index(content, []byte("damaged"))] ^= 1
		file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
		testkit.Must(t, err)
		_, err = file.Write(content)
		testkit.Must(t, err)
		testkit.Close(t, file)
		for f.metrics.GetOrCreateCounter("linkstream_edge_snapshot_rewrites_total").Get() == 0 {
			add(strings.Repeat("x", snapshot.Slack/20))
		}
		if since := l.SavedSince(); since <= 3 {
			t.Errorf("entries since %d are to be trusted, and 2 and 3 are gone", since)
		}
		l.Close()
		testkit.Equal(t, "records", f.read(t), []string{"1:sound"})
		testkit.Equal(t, "reported", f.log.Contains("has become unreadable"), true)
	})
}

// A disk that fails is asked now and then, not all the time.
func TestFailuresPause(t *testing.T) {
	within(t, func(t *testing.T) {
		f := newFile(t)
		testkit.Must(t, os.Symlink("/dev/full", f.path))
		l, _ := f.open(t)
		testkit.Must(t, os.Mkdir(f.path+".new", 0o700))
		testkit.Must(t, os.WriteFile(f.path+".new/file", nil, 0o600)) // so that the folder cannot be removed
		l.Start(func() ([]snapshot.Record, []uint64) { return nil, nil })
		time.Sleep(10 * snapshot.RetryInterval)
		synctest.Wait()
		if n := f.metrics.GetOrCreateCounter("linkstream_edge_snapshot_failures_total").Get(); n < 9 || n > 11 {
			t.Errorf("%d failures while ten are due", n)
		}
		l.Close()
	})
}

func FuzzRead(f *testing.F) {
	seed := &file{path: filepath.Join(f.TempDir(), "snapshot"), log: new(testkit.Buffer)}
	f.Add([]byte{})
	seed.add(f, "a", "b")
	f.Add(seed.bytes(f))
	seed.add(f, "c")
	whole := seed.bytes(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Fuzz(func(t *testing.T, content []byte) {
		file := newFile(t)
		file.write(t, content)
		l, records := file.open(t)
		// 1. What is read is in a file that is not longer than before, but for its header.
		if size := len(file.bytes(t)); size > max(16, len(content)) {
			t.Errorf("%d bytes became %d", len(content), size)
		}
		l.Append(kindEntry, []byte("new"))
		l.Close()
		// 2. It is read again, with what was appended.
		again := file.read(t)
		if len(again) != len(records)+1 || !slices.Equal(again[:len(records)], records) {
			t.Errorf("records %q, and then %q", records, again)
		}
	})
}

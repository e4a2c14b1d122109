package spool_test

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// machine runs an edge: it appends clicks to its spool and ships them.
type machine struct {
	*spool.Spool
	shipper *spool.Shipper
	batches map[*spool.Lane]*stream.Batch
	random  *rand.Rand
}

func newMachine(t *testing.T, cfg spool.Config, topic *topic, random *rand.Rand) *machine {
	s, _ := open(t, cfg)
	m := &machine{s, spool.NewShipper(s, topic, slog.New(slog.DiscardHandler)),
		make(map[*spool.Lane]*stream.Batch), random}
	for _, l := range s.Lanes() {
		m.batches[l] = new(stream.Batch)
	}
	return m
}

// ship sends a few clicks of a random lane.
func (m *machine) ship(t *testing.T) {
	lanes := m.Lanes()
	lane := lanes[m.random.IntN(len(lanes))]
	_, err := m.shipper.Ship(t.Context(), lane, m.batches[lane])
	testkit.Must(t, err)
}

// marked counts like a consumer that keeps a mark per lane. It returns the number of clicks, and the number that is
// missing in gaps.
func (p *topic) marked(tb testing.TB) (counted, missing int64) {
	tb.Helper()
	type key struct {
		partition int
		lane      schema.Lane
	}
	marks := make(map[key]uint64)
	for _, a := range p.attempts {
		for _, value := range a.values {
			var c schema.Click
			testkit.Must(tb, schema.DecodeClick(value, &c))
			k := key{a.partition, c.Lane}
			if c.Seq > marks[k] {
				counted++
				missing += int64(c.Seq - marks[k] - 1)
				marks[k] = c.Seq
			}
		}
	}
	return counted, missing
}

// A machine is cloned from a copy of another one's disk, and both run. Neither loses clicks to numbers of the other.
func TestCopiedSpool(t *testing.T) {
	for seed := range uint64(20) {
		random, appended := rand.New(rand.NewPCG(seed, 0)), int64(0)
		topic := &topic{partitions: 4} // a copy that is older than the binding of a lane binds it to the same one
		cfg := config(t.TempDir(), 2)
		work := func(m *machine) {
			for range 1 + random.IntN(200) {
				appended++
				testkit.Equal(t, "room", m.Append(random.Uint64(), click(appended)), true)
			}
			for range random.IntN(4) {
				m.ship(t)
			}
		}
		original := newMachine(t, cfg, topic, random)
		work(original)
		clone := newMachine(t, kill(t, cfg), topic, random)
		for range 5 {
			work(original)
			work(clone)
		}
		for original.Pending()+clone.Pending() > 0 {
			original.ship(t)
			clone.ship(t)
		}
		counted, missing := topic.marked(t)
		testkit.Equal(t, "counted", counted, appended)
		testkit.Equal(t, "missing", missing, 0)
	}
}

// reopen opens a copy of a spool and returns its lanes.
func reopen(t *testing.T, cfg spool.Config, dir string) (lanes map[schema.Lane]*spool.Lane, log *testkit.Buffer) {
	t.Helper()
	cfg.Dir = dir
	later, log, _ := openLogged(t, cfg)
	lanes = make(map[schema.Lane]*spool.Lane)
	for _, l := range recovered(later) {
		lanes[l.ID()] = l
	}
	return lanes, log
}

// wantPending requires that a copy has the clicks acknowledged+1 to last of a lane, and no gap except for clicks that a
// segment's header acknowledges.
func wantPending(t *testing.T, cfg spool.Config, dir string, id schema.Lane, acknowledged, last uint64) {
	t.Helper()
	noted := uint64(0)
	for _, path := range files(t, dir, ".segment") {
		content, err := os.ReadFile(path)
		testkit.Must(t, err)
		noted = max(noted, binary.LittleEndian.Uint64(content[atFirstSeq+8:]))
	}
	lanes, log := reopen(t, cfg, dir)
	if log.Contains("damaged") {
		t.Fatalf("a segment of the copy is damaged:\n%s", log)
	}
	seq := acknowledged
	if lane := lanes[id]; lane != nil {
		for i, c := range read(t, lane) {
			if i == 0 && c.Seq <= seq+1 || c.Seq <= noted+1 {
				seq = c.Seq
				continue
			}
			if seq++; c.Seq != seq || c.LinkID != int64(seq) {
				t.Fatalf("click %d, on link %d, is in place of click %d", c.Seq, c.LinkID, seq)
			}
		}
	}
	if max(seq, noted) < last {
		t.Fatalf("the copy ends with click %d, %d were there before", seq, last)
	}
}

func TestCopy(t *testing.T) {
	t.Run("has all unacknowledged clicks while clicks are appended and shipped", func(t *testing.T) {
		cfg := config(memoryDir(t), 1)
		cfg.MaxBytes = 16 << 20
		s, topic, shipper := shipping(t, cfg)
		lane, batch := s.Lanes()[0], new(stream.Batch)
		var appended atomic.Int64
		for range 20 {
			var busy sync.WaitGroup
			busy.Go(func() {
				for range 5000 {
					appended.Add(1)
					if !s.Append(0, click(appended.Load())) {
						t.Error("no room")
					}
				}
			})
			busy.Go(func() {
				for range 50 {
					if _, err := shipper.Ship(t.Context(), lane, batch); err != nil {
						t.Error(err)
					}
				}
			})
			before, dir := lane.Last(), filepath.Join(memoryDir(t), "copy")
			testkit.Must(t, spool.Copy(cfg.Dir, dir))
			acknowledged := lane.Acknowledged()
			busy.Wait()
			wantPending(t, cfg, dir, lane.ID(), acknowledged, before)
			topic.attempts = nil
		}
	})
	for _, when := range []int{1, 3} { // the first look at the first segment, and the second one
		t.Run(fmt.Sprintf("has no gap if segments become active in another order at look %d", when), func(t *testing.T) {
			cfg := config(t.TempDir(), 1)
			s, _ := open(t, cfg)
			appendClicks(t, s, 0, 1, 250)
			id, left := s.Lanes()[0].ID(), kill(t, cfg)
			later := make(map[string][]byte)
			for _, path := range files(t, left.Dir, ".segment") {
				content, err := os.ReadFile(path)
				testkit.Must(t, err)
				first := uint64(0)
				if len(content) > 0 { // else a spare that was being created
					first = binary.LittleEndian.Uint64(content[atFirstSeq:])
				}
				if first != 1 { // not the first segment
					testkit.Must(t, os.Remove(path))
				}
				if first > 1 { // no spare
					later[path] = content
				}
				if first > 150 { // a spare: it becomes active after another one, which is created during the copy
					testkit.Must(t, os.WriteFile(path, make([]byte, smallest), 0o600))
				}
			}
			testkit.Equal(t, "segments that become active", len(later), 2)
			dir, looks := t.TempDir(), 0
			testkit.Must(t, spool.CopyLooking(left.Dir, dir, func(string) {
				if looks++; looks == when {
					for path, content := range later {
						testkit.Must(t, os.WriteFile(path, content, 0o600))
					}
				}
			}))
			wantPending(t, cfg, dir, id, 0, 80)
		})
	}
	t.Run("is small and has neither spares nor the lock", func(t *testing.T) {
		cfg := config(t.TempDir(), 4)
		s, _ := open(t, cfg)
		appendClicks(t, s, 0, 1, 10)
		dir := filepath.Join(t.TempDir(), "new", "copy")
		testkit.Must(t, spool.Copy(cfg.Dir, dir))
		left := files(t, dir, "")
		testkit.Equal(t, "files", len(left), 2) // and the number of dropped clicks
		info, err := os.Stat(files(t, dir, ".segment")[0])
		testkit.Must(t, err)
		if info.Size() > smallest/4 || info.Mode() != 0o600 {
			t.Errorf("the file has %d bytes and mode %v", info.Size(), info.Mode())
		}
		lanes, _ := reopen(t, cfg, dir)
		isRun(t, read(t, lanes[s.Lanes()[0].ID()]), s.Lanes()[0].ID(), 1, 1, 10)
	})
	t.Run("keeps what could not be read or shipped", func(t *testing.T) {
		cfg := config(t.TempDir(), 2)
		s, _ := open(t, cfg)
		appendClicks(t, s, 0, 1, 10)
		appendClicks(t, s, 1, 1, 10)
		left := kill(t, cfg)
		segments := append(files(t, left.Dir, "00-00000001.segment"), files(t, left.Dir, "01-00000002.segment")...)
		damage(t, segments[0], func(data []byte) { data[10] ^= 1 }) // its header
		damage(t, segments[1], func(data []byte) { data[72] ^= 1 }) // a record
		want := map[string]string{}
		for _, name := range []string{"00.refused", "00-00000009.segment.damaged"} {
			path := filepath.Join(filepath.Dir(segments[0]), name)
			testkit.Must(t, os.WriteFile(path, []byte(name), 0o600))
			want[name] = name
		}
		for _, path := range segments {
			content, err := os.ReadFile(path)
			testkit.Must(t, err)
			want[filepath.Base(path)] = string(content)
		}
		for _, name := range []string{"ended", "dropped"} {
			testkit.Must(t, os.WriteFile(filepath.Join(left.Dir, name), []byte(name), 0o600))
			want[name] = name
		}
		dir := t.TempDir()
		testkit.Must(t, spool.Copy(left.Dir, dir))
		copied := map[string]string{}
		for _, path := range files(t, dir, "") {
			content, err := os.ReadFile(path)
			testkit.Must(t, err)
			copied[filepath.Base(path)] = string(content)
		}
		testkit.Equal(t, "files", copied, want)
	})
	t.Run("of no spool is nothing", func(t *testing.T) {
		testkit.Must(t, spool.Copy(filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "copy")))
	})
}

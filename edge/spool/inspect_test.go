package spool_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

func inspect(tb testing.TB, dir string) schema.SpoolReport {
	tb.Helper()
	report, err := spool.Inspect(dir)
	testkit.Must(tb, err)
	for _, lane := range report.Lanes {
		testkit.Must(tb, lane.Validate())
	}
	return report
}

// wantLanes requires what a report says about lanes.
func wantLanes(tb testing.TB, report schema.SpoolReport, want ...schema.SpoolLane) {
	tb.Helper()
	slices.SortFunc(want, func(a, b schema.SpoolLane) int { return a.Lane.Compare(b.Lane) })
	if len(want) == 0 {
		want = []schema.SpoolLane{}
	}
	testkit.Equal(tb, "lanes", report.Lanes, want)
}

func numbers(pairs ...uint64) (ranges []schema.SeqRange) {
	for i := 0; i < len(pairs); i += 2 {
		ranges = append(ranges, schema.SeqRange{First: pairs[i], Last: pairs[i+1]})
	}
	return ranges
}

func TestInspect(t *testing.T) {
	t.Run("a running spool has what is recorded and what is not acknowledged", func(t *testing.T) {
		cfg := config(t.TempDir(), 2)
		s, _ := open(t, cfg)
		wantLanes(t, inspect(t, cfg.Dir))
		a, b := s.Lanes()[0], s.Lanes()[1]
		appendClicks(t, s, 0, 1, 500)
		appendClicks(t, s, 1, 1, 3)
		wantLanes(t, inspect(t, cfg.Dir), schema.SpoolLane{Lane: a.ID(), Recorded: 500, Pending: numbers(1, 500)},
			schema.SpoolLane{Lane: b.ID(), Recorded: 3, Pending: numbers(1, 3)})
		n := uint64(readSome(t, a, a.ID(), 1))
		testkit.Must(t, a.Acknowledge())
		read(t, b)
		testkit.Must(t, b.Acknowledge())
		report := inspect(t, cfg.Dir)
		wantLanes(t, report, schema.SpoolLane{Lane: a.ID(), Recorded: 500, Pending: numbers(n+1, 500)},
			schema.SpoolLane{Lane: b.ID(), Recorded: 3})
		testkit.Equal(t, "directory", report.Dir, cfg.Dir)
		testkit.Equal(t, "dropped", report.Dropped, 0)
		testkit.Equal(t, "damaged", len(report.Damaged), 0)
	})
	t.Run("the end of a lane is known when its segments are gone", func(t *testing.T) {
		cfg := config(t.TempDir(), 2)
		s, closeSpool := open(t, cfg)
		first, second := s.Lanes()[0], s.Lanes()[1]
		appendClicks(t, s, 0, 1, 300)
		appendClicks(t, s, 1, 1, 200)
		read(t, first)
		testkit.Must(t, first.Acknowledge())
		closeSpool() // ends the first lane
		wantLanes(t, inspect(t, cfg.Dir), schema.SpoolLane{Lane: first.ID(), Recorded: 300},
			schema.SpoolLane{Lane: second.ID(), Recorded: 200, Pending: numbers(1, 200)})
		topic := &topic{partitions: 1}
		later, err := spool.OpenLeft(cfg, new(testkit.Buffer).Logger())
		testkit.Must(t, err)
		spool.NewShipper(later, topic, new(testkit.Buffer).Logger()).Run(t.Context()) // ends the second one
		testkit.Must(t, later.Close())
		testkit.Equal(t, "segments", len(files(t, cfg.Dir, ".segment")), 0)
		wantLanes(t, inspect(t, cfg.Dir), schema.SpoolLane{Lane: first.ID(), Recorded: 300},
			schema.SpoolLane{Lane: second.ID(), Recorded: 200})
	})
	t.Run("clicks of a killed process are found and a lane that ends twice is one", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, closeSpool := open(t, cfg)
		lane := s.Lanes()[0]
		appendClicks(t, s, 0, 1, 200)
		read(t, lane)
		testkit.Must(t, lane.Acknowledge())
		appendClicks(t, s, 0, 201, 250)
		killed := kill(t, cfg)
		wantLanes(t, inspect(t, killed.Dir), schema.SpoolLane{Lane: lane.ID(), Recorded: 250, Pending: numbers(201, 250)})
		read(t, lane)
		testkit.Must(t, lane.Acknowledge())
		closeSpool()
		ended, err := os.ReadFile(filepath.Join(cfg.Dir, "ended"))
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(filepath.Join(killed.Dir, "ended"), slices.Concat(ended, ended, ended[:17]), 0o600))
		wantLanes(t, inspect(t, killed.Dir), schema.SpoolLane{Lane: lane.ID(), Recorded: 250, Pending: numbers(201, 250)})
	})
	t.Run("a directory that is no spool is an error", func(t *testing.T) {
		for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
			if _, err := spool.Inspect(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestInspectDamage(t *testing.T) {
	t.Run("a damaged record is not pending", func(t *testing.T) {
		cfg, id, segments := left(t, smallest)
		damage(t, segments[1], func(data []byte) { record(data, 5)[8] ^= 1 })
		second := firstSeq(t, segments[1])
		report := inspect(t, cfg.Dir)
		wantLanes(t, report, schema.SpoolLane{Lane: id, Recorded: leftClicks,
			Pending: numbers(1, second+4, second+6, leftClicks)})
		testkit.Equal(t, "damaged", report.Damaged, []string{segments[1]})
	})
	t.Run("a segment without a header is named also when it is set aside", func(t *testing.T) {
		cfg, id, segments := left(t, smallest)
		damage(t, segments[1], func(data []byte) { data[20] ^= 1 })
		second, third := firstSeq(t, segments[1]), firstSeq(t, segments[2])
		want := schema.SpoolLane{Lane: id, Recorded: leftClicks, Pending: numbers(1, second-1, third, leftClicks)}
		report := inspect(t, cfg.Dir)
		wantLanes(t, report, want)
		testkit.Equal(t, "damaged", report.Damaged, []string{segments[1]})
		_, closeSpool := open(t, cfg)
		report = inspect(t, cfg.Dir)
		wantLanes(t, report, want)
		testkit.Equal(t, "damaged", report.Damaged, []string{segments[1] + ".damaged"})
		closeSpool()
	})
}

// The topic has every click that it acknowledges. So clicks that are missing in a topic, read after the report, are
// pending in the report.
func TestInspectARunningSpool(t *testing.T) {
	cfg := config(t.TempDir(), 2)
	s, _ := open(t, cfg)
	var mu sync.Mutex
	shipped := make(map[schema.Lane]uint64)
	stop := make(chan struct{})
	var working sync.WaitGroup
	for hint, lane := range s.Lanes() {
		working.Go(func() {
			random, batch := rand.New(rand.NewPCG(1, uint64(hint))), new(stream.Batch)
			for link := int64(1); ; link++ {
				select {
				case <-stop:
					return
				default:
				}
				s.Append(uint64(hint), click(link))
				if random.IntN(100) == 0 {
					lane.Read(batch, 1+random.IntN(10_000))
					mu.Lock()
					shipped[lane.ID()] += uint64(batch.Len())
					mu.Unlock()
					batch.Reset(time.Time{})
					if err := lane.Acknowledge(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	defer working.Wait()
	defer close(stop)
	seen := uint64(0)
	for begin := time.Now(); seen < 30_000; {
		report := inspect(t, cfg.Dir)
		mu.Lock()
		for _, l := range report.Lanes {
			seen = max(seen, l.Recorded)
			covered := shipped[l.Lane]
			for _, r := range l.Pending {
				if r.First > covered+1 {
					t.Fatalf("lane %s: %d to %d are neither pending nor shipped", l.Lane, covered+1, r.First-1)
				}
				covered = max(covered, r.Last)
			}
			if covered < l.Recorded {
				t.Fatalf("lane %s: %d to %d are neither pending nor shipped", l.Lane, covered+1, l.Recorded)
			}
		}
		mu.Unlock()
		testkit.Equal(t, "damaged", len(report.Damaged), 0)
		if time.Since(begin) > testkit.Patience {
			t.Fatalf("%d clicks after %v", seen, testkit.Patience)
		}
	}
}

func TestDroppedClicksAreRemembered(t *testing.T) {
	fill := func(s *spool.Spool) {
		for s.Append(0, click(1)) {
		}
	}
	cfg := config(t.TempDir(), 1)
	cfg.MaxBytes = 4 * smallest
	s, closeSpool := open(t, cfg)
	fill(s)
	fill(s)
	testkit.Equal(t, "dropped", inspect(t, cfg.Dir).Dropped, 2)
	killed := kill(t, cfg)
	later, closeLater := open(t, killed)
	fill(later)
	testkit.Equal(t, "dropped since the start", later.Dropped(), 1)
	testkit.Equal(t, "dropped", inspect(t, killed.Dir).Dropped, 3)
	closeLater()
	closeSpool()
	testkit.Equal(t, "dropped after a stop", inspect(t, killed.Dir).Dropped, 3)
}

func TestEndsAreBounded(t *testing.T) {
	cfg := config(t.TempDir(), 1)
	_, closeSpool := open(t, cfg)
	closeSpool()
	var ends []byte
	for n := uint32(0); len(ends) <= spool.MaxLaneEnds; n++ {
		ends = append(ends, spool.EncodeLaneEnd(schema.Lane{Number: n}, uint64(n)+1, time.UnixMilli(0))...)
	}
	path := filepath.Join(cfg.Dir, "ended")
	entries := len(ends) / 40
	testkit.Must(t, os.WriteFile(path, append(ends, "cut off"...), 0o600))
	testkit.Equal(t, "lanes", len(inspect(t, cfg.Dir).Lanes), entries)
	_, closeSpool = open(t, cfg)
	closeSpool()
	report := inspect(t, cfg.Dir)
	if n := len(report.Lanes); n < entries/3 || n > entries*2/3 {
		t.Errorf("%d of %d entries are left", n, entries)
	}
	has := func(l schema.SpoolLane) bool { return l.Recorded == uint64(entries) }
	testkit.Equal(t, "the last entry is left", slices.ContainsFunc(report.Lanes, has), true)
}

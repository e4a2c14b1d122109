package simulation_test

import (
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/cryptotest"

	"linkstream/ingest/worker"
)

const (
	events        = 250 // of a simulation, before it settles
	maxPartitions = 5
	patience      = 10_000 // rounds after which what has not settled never will
)

// simulation is one run. All that is random in it follows from its seed.
type simulation struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	broken   broken
	quiet    bool // no more faults
	happened map[fault]int
	trace    hash.Hash64 // of everything that happened, in order
	log      *slog.Logger

	broker  broker
	store   store
	edge    edge
	workers []*counter

	mu         sync.Mutex
	violations []string
	miscounts  []string
}

// simulate runs the simulation of a seed to its end.
func simulate(t *testing.T, seed uint64, broken broken) *simulation {
	s := &simulation{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), broken: broken,
		happened: make(map[fault]int), trace: fnv.New64a()}
	s.log = slog.New(complaints{s})
	s.store = store{fallsLow: s.random.IntN(2) == 0, blind: broken.blind, forgets: broken.forgets}
	s.edge = edge{simulation: s, folder: memoryDir(t)}
	s.drawIdentities()
	s.edge.open()
	for range 1 + s.random.IntN(3) {
		s.addPartition()
	}
	for range events {
		s.happen()
	}
	s.settle()
	s.edge.stop()
	s.edge.close(s.edge.folder)
	s.count()
	return s
}

// drawIdentities makes crypto/rand, which incarnations are drawn from, follow the seed.
func (s *simulation) drawIdentities() { cryptotest.SetGlobalRandom(s.t, s.seed) }

// addPartition adds a partition to the topic, and a worker for it.
func (s *simulation) addPartition() {
	s.broker.partitions = append(s.broker.partitions, nil)
	s.addWorker(len(s.broker.partitions) - 1)
}

// happen lets one thing happen, if it can.
func (s *simulation) happen() {
	switch n := s.random.IntN(200); {
	case n < 12:
		s.edge.click()
	case n < 18:
		if s.arrive() {
			s.happened[lateArrival]++
		}
	case n < 20:
		s.edge.kill()
	case n < 21:
		s.edge.restart()
	case n < 26:
		s.edge.wipe()
	case n < 28:
		s.killWorker()
	case n < 33:
		s.overlapWorkers()
	case n < 34 && len(s.broker.partitions) < maxPartitions:
		s.happened[topicGrows]++
		s.addPartition()
	default:
		s.resumeOne()
	}
}

// arrive lets one of the delayed batches arrive, and reports whether there was one.
func (s *simulation) arrive() bool {
	n := len(s.broker.delayed)
	if n > 0 {
		s.broker.arrive(s.random.IntN(n))
	}
	return n > 0
}

func (s *simulation) resumeOne() {
	i := s.random.IntN(len(s.edge.lanes) + len(s.workers))
	if i < len(s.edge.lanes) {
		s.edge.lanes[i].resume()
	} else {
		s.workers[i-len(s.edge.lanes)].resume()
	}
}

// settle ends the faults and counts what is left: at first with all workers that there are, each of which must recover
// by itself, then with one for each partition, which must not meet an error, while batches and clicks go on coming.
func (s *simulation) settle() {
	s.quiet = true
	s.shipAll(s.resumeWorkers)
	s.recoverAll()
	for _, w := range s.workers {
		w.kill()
	}
	s.workers = nil
	alone := make([]*worker.Partition, len(s.broker.partitions))
	for i := range alone {
		alone[i] = s.newPartition(i, &downlink{simulation: s, ClickStore: &s.store, pause: func() error { return nil }})
	}
	for range 3 {
		s.countAll(alone)
		s.edge.click()
		s.shipAll(func() {})
	}
	for s.arrive() {
		s.countAll(alone)
	}
	s.countAll(alone)
}

func (s *simulation) resumeWorkers() {
	for _, w := range s.workers {
		w.resume()
	}
}

// recoverAll waits until every worker has counted to the end, whatever it met before.
func (s *simulation) recoverAll() {
	for range patience {
		if !slices.ContainsFunc(s.workers, func(w *counter) bool { return !w.finished(&s.broker) }) {
			return
		}
		s.resumeWorkers()
	}
	s.violate("a worker never recovers")
}

// shipAll lets the edge ship all that is pending, while other things happen.
func (s *simulation) shipAll(meanwhile func()) {
	for range patience {
		if s.edge.spool.Pending() == 0 {
			return
		}
		for _, l := range s.edge.lanes {
			l.resume()
		}
		meanwhile()
		if s.random.IntN(4) == 0 {
			s.arrive()
		}
	}
	s.violate("%d clicks are never shipped", s.edge.spool.Pending())
}

// countAll lets each partition be counted to its end.
func (s *simulation) countAll(workers []*worker.Partition) {
	for i, w := range workers {
		end := int64(len(s.broker.partitions[i]))
		for next, n := int64(-1), 0; next != end; n++ {
			var err error
			next, err = w.Step(context.Background())
			s.note("settle", i, next, err)
			if err != nil || n == patience {
				s.violate("partition %d, counted to %d of %d by its only worker: %v", i, next, end, err)
				break
			}
		}
	}
}

// count compares the store with what was appended.
func (s *simulation) count() {
	counts := make(map[int64]int)
	for _, row := range s.store.rows {
		counts[row.link]++
	}
	for link := int64(1); link <= s.edge.appended; link++ {
		if n := counts[link]; n != 1 {
			s.miscounts = append(s.miscounts, fmt.Sprintf("click %d of %d is counted %d times", link, s.edge.appended, n))
		}
		delete(counts, link)
	}
	for link := range counts {
		s.miscounts = append(s.miscounts, fmt.Sprintf("click %d was never appended", link))
	}
	s.note("end", len(s.store.rows), s.edge.appended, nil)
}

// note adds to the trace.
func (s *simulation) note(what string, a int, b int64, err error) {
	fmt.Fprintln(s.trace, what, a, b, err)
}

// violate says that the protocol was violated in another way than by a wrong count.
func (s *simulation) violate(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// complaints takes warnings and errors in the log for violations: in a simulation nothing goes wrong that they tell of.
type complaints struct{ *simulation }

func (complaints) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (c complaints) WithAttrs([]slog.Attr) slog.Handler             { return c }
func (c complaints) WithGroup(string) slog.Handler                  { return c }

func (c complaints) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	c.violate("log: %s", text)
	return nil
}

// memoryDir returns a new folder, in memory where the system has that. A simulation that gets to its end removes it.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "linkstream-simulation-")
	if err != nil {
		dir, err = os.MkdirTemp("", "linkstream-simulation-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

//go:build !race

package simulation_test

import (
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	"linkstream/ingest/worker"
	"linkstream/schema/testkit"
)

const (
	events        = 250 // with faults, before the simulation drains
	maxPartitions = 5
	maxRounds     = 10_000 // after which a state that is not reached never will be
)

// simulation is one run. All its randomness follows from the seed.
type simulation struct {
	t         *testing.T
	seed      uint64
	random    *rand.Rand
	broken    broken
	faultsOff bool
	occurred  map[fault]int
	trace     hash.Hash64 // of all events, in order
	log       *slog.Logger
	seconds   int // since the start, one per event

	broker          broker
	removedRestarts int // of partitions that the topic has lost
	shrunkAt        int // when it lost the last one
	store           store
	backup          *backup
	edge            edge
	machine         *machine // nil if there is a broker
	workers         []*workerTask
	lost            map[int64]bool // clicks that were lost before they were counted: they may be missing

	mu         sync.Mutex
	violations []string // of the protocol, wrong counts aside
	miscounted []string // clicks that are not counted exactly once
}

// simulate runs the simulation of a seed to its end.
func simulate(t *testing.T, seed uint64, broken broken) *simulation {
	s := &simulation{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), broken: broken,
		occurred: make(map[fault]int), trace: fnv.New64a(), lost: make(map[int64]bool)}
	s.log = slog.New(violationLog{s})
	s.store = store{lowPosition: s.random.IntN(2) == 0, ignoresBase: broken.ignoresBase, losesMarks: broken.losesMarks,
		unfenced: broken.unfencedEpochs, twoSteps: s.random.IntN(2) == 0, window: tokenWindow}
	if broken.fewTokens {
		s.store.window = 1
	}
	s.edge = edge{simulation: s, root: newSpoolRoot(t), disk: newDisk(), dropped: make(map[int64]bool)}
	s.seedIdentities()
	s.edge.open()
	for range 1 + s.random.IntN(3) {
		s.addPartition()
	}
	for range events {
		s.randomEvent()
	}
	s.drain()
	s.edge.stop()
	s.edge.close(s.edge.root)
	s.compare("counted", s.counted(), s.lost)
	return s
}

// seedIdentities seeds crypto/rand, from which incarnations are drawn.
func (s *simulation) seedIdentities() { cryptotest.SetGlobalRandom(s.t, s.seed) }

// now returns the right time.
func (s *simulation) now() time.Time {
	return time.UnixMilli(1_800_000_000_000).Add(time.Duration(s.seconds) * time.Second)
}

// addPartition adds a partition to the topic, and a worker for it.
func (s *simulation) addPartition() {
	s.broker.partitions = append(s.broker.partitions, partitionLog{restarts: s.removedRestarts})
	s.addWorker(len(s.broker.partitions) - 1)
}

// randomEvent runs one event. Most events resume a task.
func (s *simulation) randomEvent() {
	s.seconds++
	s.endLostWorkers()
	if s.random.IntN(40) == 0 {
		s.edge.freeDisk()
	}
	if s.broken.often != nil && s.random.IntN(10) == 0 {
		s.broken.often(s)
		return
	}
	switch n := s.random.IntN(246); {
	case n < 12:
		s.edge.click()
	case n < 18:
		if s.deliverDelayed() {
			s.occur(lateArrival)
		}
	case n < 20:
		s.edge.kill()
	case n < 21:
		s.edge.restart()
	case n < 26:
		s.edge.wipe()
	case n < 28:
		s.killWorker()
	case n < 39:
		s.overlapWorkers()
	case n < 40:
		s.growTopic()
	case n < 43:
		s.edge.sync()
	case n < 45:
		s.suspend()
	case n < 46:
		s.edge.setClock()
	case n < 47:
		s.limitBatches()
	case n < 49:
		s.edge.loseRoom()
	case n < 51:
		s.edge.fillDisk()
	case n < 58 && s.seed%2 == 0: // other seeds lose nothing
		s.disaster()
	default:
		s.resumeTask()
	}
}

func (s *simulation) growTopic() {
	if len(s.broker.partitions) < maxPartitions {
		s.occur(topicGrows)
		s.addPartition()
	}
}

// disaster destroys copies of clicks.
func (s *simulation) disaster() {
	switch s.random.IntN(8) {
	case 0, 1:
		s.losing(s.loseRecords)
	case 2:
		s.losing(s.deleteOldest)
	case 3, 7:
		s.losing(s.removePartition)
	case 4, 5:
		if s.backup == nil {
			s.backup = s.store.backup()
		} else {
			s.losing(s.restoreStore)
		}
	case 6:
		s.edge.losePower()
	}
}

// suspend does not resume a worker for some time. It does not know. If possible, it is one that has checked the
// position and has not inserted yet.
func (s *simulation) suspend() {
	if len(s.workers) == 0 {
		return
	}
	w := s.workers[s.random.IntN(len(s.workers))]
	for _, other := range s.workers {
		if other.view.inserting && other.suspended == 0 {
			w = other
		}
	}
	s.occur(workerSuspended)
	w.suspended = 5 + s.random.IntN(20)
}

// limitBatches changes the topic's max.message.bytes.
func (s *simulation) limitBatches() {
	s.broker.maxBytes = 0
	switch s.random.IntN(4) {
	case 0:
		s.broker.maxBytes = 3000
	case 1:
		s.broker.maxBytes = 400 // less than some clicks have
	}
}

// deliverDelayed delivers a delayed request, and reports whether there was one.
func (s *simulation) deliverDelayed() bool {
	n := len(s.broker.delayed)
	if n > 0 {
		s.broker.deliver(s.random.IntN(n))
	}
	return n > 0
}

func (s *simulation) resumeTask() {
	i := s.random.IntN(len(s.edge.lanes) + len(s.workers))
	if i < len(s.edge.lanes) {
		s.edge.lanes[i].resume()
	} else if w := s.workers[i-len(s.edge.lanes)]; w.suspended > 0 {
		w.suspended--
	} else {
		for range 1 + s.random.IntN(3) {
			s.seconds++
			w.resume()
		}
	}
}

// drain turns faults off and counts the rest: first with all present workers: each must recover by itself,
// then with one worker per partition, which must not meet an error while clicks and delayed requests continue to
// arrive.
func (s *simulation) drain() {
	s.faultsOff = true
	s.edge.skew = 0
	s.edge.freeDisk()
	if s.broker.maxBytes > 0 {
		s.broker.maxBytes = 3000 // more than any click has
	}
	s.shipAll(s.resumeWorkers)
	s.seconds += insertWithin
	s.endLostWorkers()
	s.awaitWorkers()
	for _, w := range s.workers {
		w.kill()
	}
	s.workers = nil
	single := make([]*worker.Partition, len(s.broker.partitions))
	for i := range single {
		single[i] = s.newPartition(i, &engineView{simulation: s, yield: func() error { return nil }})
	}
	for range 3 {
		s.countToEnd(single)
		s.edge.click()
		s.shipAll(func() {})
	}
	for s.deliverDelayed() {
		s.countToEnd(single)
	}
	s.countToEnd(single)
}

func (s *simulation) resumeWorkers() {
	for _, w := range s.workers {
		s.seconds++
		for range 1 + s.random.IntN(8) {
			w.resume()
		}
	}
}

// awaitWorkers resumes the workers until each has counted to the end.
func (s *simulation) awaitWorkers() {
	for range maxRounds {
		if !slices.ContainsFunc(s.workers, func(w *workerTask) bool { return !w.atEnd(&s.broker) }) {
			return
		}
		s.resumeWorkers()
	}
	s.addViolation("a worker never recovers")
}

// shipAll resumes the shippers until no click is pending, and calls meanwhile in between.
func (s *simulation) shipAll(meanwhile func()) {
	for range maxRounds {
		s.seconds++
		if s.edge.pending() == 0 {
			return
		}
		for _, l := range s.edge.lanes {
			l.resume()
		}
		meanwhile()
		if s.random.IntN(4) == 0 {
			s.deliverDelayed()
		}
	}
	s.addViolation("%d clicks are never shipped", s.edge.pending())
}

// countToEnd counts each partition to its end with its single worker.
func (s *simulation) countToEnd(workers []*worker.Partition) {
	for i, w := range workers {
		end := s.broker.partitions[i].end()
		for next, n := int64(-1), 0; next != end; n++ {
			s.seconds += insertWithin + 1 // between two attempts
			var err error
			next, err = w.Step(context.Background())
			s.traceEvent("drain", i, next, err)
			if err != nil || n == maxRounds {
				s.addViolation("the single worker of partition %d is at offset %d of %d: %v", i, next, end, err)
				break
			}
		}
	}
}

// compare compares the links of clicks in a store with the appended clicks.
func (s *simulation) compare(what string, links iter.Seq[int64], lost map[int64]bool) {
	counts, counted := make(map[int64]int), 0
	for link := range links {
		counts[link]++
		counted++
	}
	for link := int64(1); link <= s.edge.appended; link++ {
		if n := counts[link]; n > 1 || n == 0 && !lost[link] && !s.edge.dropped[link] || n > 0 && s.edge.dropped[link] {
			s.miscounted = append(s.miscounted, fmt.Sprintf("click %d of %d is %s %d times", link, s.edge.appended, what, n))
		}
		delete(counts, link)
	}
	for link := range counts {
		s.miscounted = append(s.miscounted, fmt.Sprintf("click %d was never appended", link))
	}
	s.traceEvent(what, counted, s.edge.appended, nil)
}

// counted returns the links of all counted clicks.
func (s *simulation) counted() iter.Seq[int64] {
	if s.machine != nil {
		return slices.Values(s.machine.file.last().rows)
	}
	return func(yield func(int64) bool) {
		for _, row := range s.store.rows {
			if !yield(row.link) {
				return
			}
		}
	}
}

func (s *simulation) traceEvent(what string, a int, b int64, err error) {
	fmt.Fprintln(s.trace, what, a, b, err)
	if *oneSeed > 0 && testing.Verbose() {
		fmt.Println(s.seconds, what, a, b, err)
	}
}

// occur counts a fault.
func (s *simulation) occur(kind fault) {
	s.occurred[kind]++
	s.traceEvent(string(kind), 0, 0, nil)
}

func (s *simulation) addViolation(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// allowed are the faults that are a reason to log a warning or an error. No other fault is a reason for any.
var allowed = map[string][]fault{
	"the log may not be the one that was counted, counting it from its start": {logTruncated, logReplaced, recordsDeleted,
		topicShrinks, storeRestored},
	"clicks of a lane are missing": {logTruncated, logReplaced, recordsDeleted, topicShrinks, storeRestored, refusedClick,
		powerLost},
	"retention deleted records before they were counted":               {recordsDeleted},
	"the topic does not accept a click, setting it aside":              {refusedClick},
	"the topic has lost a lane's partition, the lane gets another one": {topicShrinks},
	"clicks in a spool segment are damaged, skipping them":             {powerLost},
	"setting a damaged spool segment aside":                            {powerLost},
	"spool segment is damaged, setting it aside":                       {powerLost},
}

// violationLog turns warnings and errors in the log into violations.
type violationLog struct{ *simulation }

func (violationLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (v violationLog) WithAttrs([]slog.Attr) slog.Handler             { return v }
func (v violationLog) WithGroup(string) slog.Handler                  { return v }

func (v violationLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	if text == "cannot create spool segment" {
		// also logged by goroutines: the simulation sees each click that it makes drop
		return nil
	}
	for _, f := range allowed[text] {
		if v.occurred[f] > 0 {
			return nil
		}
	}
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	v.addViolation("log: %s", text)
	return nil
}

// newSpoolRoot returns a new directory, in memory if the system has /dev/shm. A simulation removes it at its end, and
// the test if a simulation fails.
func newSpoolRoot(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "linkstream-simulation-")
	if err != nil {
		dir, err = os.MkdirTemp("", "linkstream-simulation-")
	}
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, os.RemoveAll(dir)) })
	return dir
}

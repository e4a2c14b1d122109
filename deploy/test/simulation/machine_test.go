//go:build !race

package simulation_test

import (
	"context"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// machine is a machine without a broker: the process of the edge counts its clicks, by a real count.Writer in a model
// of the click store's file.
type machine struct {
	*simulation
	file     clickFile
	queued   clickFile      // the link store's: clicks queued for webhooks
	unqueued map[int64]bool // clicks that a power failure may have taken before they were queued for webhooks
	writer   *task
	waiting  []*submission // of lanes, in the order of their arrival
}

// clickFile is the click store's file. A commit is in the page cache, which survives the process. A power failure
// leaves what was synced, or any later commit: the log of commits is written in order.
type clickFile struct {
	commits []fileState // since the last sync, which is the first one
}

type fileState struct {
	marks map[schema.Lane]uint64
	rows  []int64 // links of the counted clicks
}

func (f *clickFile) last() fileState { return f.commits[len(f.commits)-1] }

func (f *clickFile) commit(change func(*fileState)) {
	last := f.last()
	next := fileState{marks: maps.Clone(last.marks), rows: slices.Clip(last.rows)}
	change(&next)
	f.commits = append(f.commits, next)
}

func (f *clickFile) sync() { f.commits = []fileState{f.last()} }

// submission is a batch that a lane waits for.
type submission struct {
	batch *stream.Batch
	done  bool
	err   error
}

// simulateMachine runs the simulation of a seed to its end.
func simulateMachine(t *testing.T, seed uint64, broken broken) *simulation {
	s := &simulation{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), broken: broken,
		occurred: make(map[fault]int), trace: fnv.New64a(), lost: make(map[int64]bool)}
	s.log = slog.New(violationLog{s})
	empty := []fileState{{marks: map[schema.Lane]uint64{}}}
	m := &machine{simulation: s, file: clickFile{commits: empty}, queued: clickFile{commits: empty},
		unqueued: make(map[int64]bool)}
	s.machine = m
	s.edge = edge{simulation: s, root: newSpoolRoot(t), disk: newDisk(), dropped: make(map[int64]bool)}
	s.seedIdentities()
	s.edge.open()
	for range events {
		m.randomEvent()
	}
	s.faultsOff, s.edge.skew = true, 0
	s.edge.freeDisk()
	s.shipAll(func() { m.writer.resume() })
	s.edge.stop()
	s.edge.close(s.edge.root)
	s.compare("counted", s.counted(), s.lost)
	maps.Copy(m.unqueued, s.lost)
	s.compare("queued", slices.Values(m.queued.last().rows), m.unqueued)
	return s
}

func (m *machine) randomEvent() {
	m.seconds++
	if m.random.IntN(40) == 0 {
		m.edge.freeDisk()
	}
	if m.broken.often != nil && m.random.IntN(10) == 0 {
		m.broken.often(m.simulation)
		return
	}
	switch n := m.random.IntN(200); {
	case n < 20:
		m.edge.click()
	case n < 26:
		m.edge.kill()
	case n < 28:
		m.edge.restart()
	case n < 30:
		m.edge.wipe()
	case n < 35:
		m.edge.sync()
	case n < 36:
		m.edge.setClock()
	case n < 38:
		m.edge.loseRoom()
	case n < 40:
		m.edge.fillDisk()
	case n < 43 && m.seed%2 == 0: // other seeds lose nothing
		m.edge.losePower()
	default:
		m.resumeTask()
	}
}

func (m *machine) resumeTask() {
	if m.random.IntN(8) < 3 {
		m.writer.resume()
	} else {
		m.edge.lanes[m.random.IntN(len(m.edge.lanes))].resume()
	}
}

// loseCommits loses power after a commit that was not synced, when the process or the next one has relied on it.
func (s *simulation) loseCommits() {
	resume := func(until func() bool) {
		for range 100 {
			if until() {
				return
			}
			s.machine.resumeTask()
		}
	}
	resume(func() bool { return s.edge.pending() == 0 })
	s.edge.click()
	s.edge.sync()
	resume(func() bool { return len(s.machine.file.commits) > 1 })
	if s.random.IntN(2) == 0 {
		s.edge.kill()
	}
	resume(func() bool { return s.edge.pending() == 0 })
	s.edge.losePower()
}

// open starts the writer of a new process. What the process before has committed is synced first.
func (m *machine) open() {
	m.waiting = nil
	if !m.broken.leavesCommits {
		m.file.sync()
		m.queued.sync()
	}
	store, queue := &machineStore{machine: m}, &machineQueue{machine: m}
	w := count.NewWriter(store, queue, nil, m.log, metrics.NewSet())
	m.writer = start(func(yield yield) {
		store.yield, queue.yield = yield, yield
		if len(m.waiting) == 0 {
			return
		}
		together := m.waiting[:1+m.random.IntN(len(m.waiting))]
		m.waiting = m.waiting[len(together):]
		batches := make([]*stream.Batch, len(together))
		for i, s := range together {
			batches[i] = s.batch
		}
		for i, err := range w.Count(context.Background(), batches...) {
			together[i].done, together[i].err = true, err
		}
	})
}

// losePower leaves what is on the disk of both stores.
func (m *machine) losePower() {
	for _, file := range []*clickFile{&m.file, &m.queued} {
		file.commits = file.commits[:1+m.random.IntN(len(file.commits))]
		file.sync()
	}
	for link := m.edge.synced + 1; link <= m.edge.appended; link++ {
		m.unqueued[link] = m.unqueued[link] || !slices.Contains(m.queued.last().rows, link)
	}
}

// machineTopic is the writer as the shipper of one lane sees it.
type machineTopic struct {
	*producer
	machine *machine
}

func (t *machineTopic) Partitions(context.Context) (int, error) { return 1, t.yield() }

func (t *machineTopic) Produce(_ context.Context, _ int, batch *stream.Batch) error {
	s := &submission{batch: batch}
	if t.broken.releasesEarly { // the writer counts what it was given, if it lives
		s.batch = new(stream.Batch)
		s.batch.Reset(batch.Time)
		for i := range batch.Len() {
			s.batch.Append(nil, batch.Value(i))
		}
		t.machine.waiting = append(t.machine.waiting, s)
		return nil
	}
	t.machine.waiting = append(t.machine.waiting, s)
	t.inFlight = true
	for !s.done {
		if err := t.yield(); err != nil {
			return err
		}
	}
	if s.err == nil && t.random.IntN(2) == 0 { // counted, and not released yet
		if err := t.yield(); err != nil {
			return err
		}
	}
	t.inFlight = false
	return s.err
}

// machineStore is the click store as the writer of one process sees it.
type machineStore struct {
	*machine
	yield yield
}

func (m *machineStore) LaneMarks(_ context.Context, lanes []schema.Lane) ([]uint64, error) {
	if err := m.yield(); err != nil {
		return nil, err
	}
	if m.fault(failedPosition, 20) {
		return nil, errNetwork
	}
	marks := make([]uint64, len(lanes))
	for i, lane := range lanes {
		if !m.broken.losesMarks {
			marks[i] = m.file.last().marks[lane]
		}
	}
	return marks, nil
}

// InsertClicks commits, and syncs what it has committed.
func (m *machineStore) InsertClicks(_ context.Context, b *schema.ClickBatch) error {
	if err := m.yield(); err != nil {
		return err
	}
	if m.fault(failedInsert, 8) {
		return errNetwork
	}
	count := func(f *fileState) { f.rows = append(f.rows, b.LinkID...) }
	mark := func(f *fileState) {
		for i, lane := range b.Lane {
			f.marks[lane] = max(f.marks[lane], b.Seq[i])
		}
	}
	if m.broken.marksApart {
		m.file.commit(count)
		if err := m.yield(); err != nil {
			return err
		}
		m.file.commit(mark)
	} else {
		m.file.commit(func(f *fileState) { count(f); mark(f) })
	}
	if err := m.yield(); err != nil {
		return err
	}
	if !m.broken.unsyncedCommits || m.random.IntN(10) == 0 {
		m.file.sync()
	}
	if err := m.yield(); err != nil {
		return err
	}
	if m.fault(lostInsertAnswer, 8) {
		return errNetwork
	}
	return nil
}

// machineQueue is the link store as the writer of one process sees it. A webhook subscribes to all clicks.
type machineQueue struct {
	schema.ClickHookStore // nil: a machine has no positions
	*machine
	yield yield
}

func (m *machineQueue) ClickHookAccounts(context.Context) ([]int64, error) {
	if err := m.yield(); err != nil {
		return nil, err
	}
	if m.fault(failedPosition, 20) {
		return nil, errNetwork
	}
	return []int64{1}, nil
}

func (m *machineQueue) QueuedMarks(_ context.Context, lanes []schema.Lane) ([]uint64, error) {
	if err := m.yield(); err != nil {
		return nil, err
	}
	marks := make([]uint64, len(lanes))
	for i, lane := range lanes {
		if !m.broken.losesQueuedMarks {
			marks[i] = m.queued.last().marks[lane]
		}
	}
	return marks, nil
}

func (m *machineQueue) QueueClicks(_ context.Context, b *schema.ClickBatch) error {
	if err := m.yield(); err != nil {
		return err
	}
	if m.fault(failedInsert, 8) {
		if m.broken.queuesOnce {
			return nil
		}
		return errNetwork
	}
	m.queued.commit(func(f *fileState) {
		f.rows = append(f.rows, b.LinkID...)
		for i, lane := range b.Lane {
			f.marks[lane] = max(f.marks[lane], b.Seq[i])
		}
	})
	m.queued.sync()
	if err := m.yield(); err != nil {
		return err
	}
	if m.fault(lostInsertAnswer, 8) {
		return errNetwork
	}
	return nil
}

// TestExactlyOnceOnOneMachine is TestExactlyOnce for a machine without a broker.
func TestExactlyOnceOnOneMachine(t *testing.T) {
	want := []fault{edgeKilled, edgeKilledInFlight, edgeRestarted, diskWiped, failedPosition, failedInsert,
		lostInsertAnswer, clockSet, powerLost, pageLost, diskFull, droppedClick, refusedClick}
	wantExactlyOnce(t, simulateMachine, 3, want)
}

func TestSimulationCatchesBrokenMachines(t *testing.T) {
	wantCaught(t, 60, miscounts(simulateMachine), map[string]broken{
		"no marks":                                {losesMarks: true},
		"marks in a transaction of their own":     {marksApart: true},
		"clicks released before the commit":       {releasesEarly: true},
		"clicks released before the sync":         {unsyncedCommits: true, often: (*simulation).loseCommits},
		"batches that are skipped on an error":    {skips: true},
		"commits that are left unsynced":          {leavesCommits: true, often: (*simulation).loseCommits},
		"clicks that are never synced":            {unsyncedFiles: true},
		"webhooks without marks":                  {losesQueuedMarks: true},
		"clicks queued for webhooks at most once": {queuesOnce: true},
		"folders that are never synced":           {unsyncedNames: true},
		"a spool whose parent is not synced":      {unsyncedSpool: true},
		"folders whose parent is not synced":      {unsyncedFolders: true},
		"leftovers that are never synced":         {leavesUnsynced: true},
		"clicks that a full disk drops":           {dropsSilently: true},
	})
}

//go:build !race

package simulation_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// maxWorkers bounds how many workers count the same partition at the same time.
const maxWorkers = 3

// workerTask is a worker that counts a partition.
type workerTask struct {
	*task
	partition int
	view      *engineView
	suspended int   // how often it will not be resumed
	next      int64 // result of the last Step
	err       error
}

// addWorker starts a worker on a partition, which may have others.
func (s *simulation) addWorker(partition int) {
	view := &engineView{simulation: s}
	p := s.newPartition(partition, view)
	w := &workerTask{partition: partition, view: view}
	w.task = start(func(yield yield) {
		view.yield = yield
		w.next, w.err = p.Step(context.Background())
		s.traceEvent("step", partition, w.next, w.err)
		if schema.ErrorCode(w.err) == schema.CodeConflict {
			s.occur(insertConflict)
		}
	})
	s.workers = append(s.workers, w)
}

func (s *simulation) newPartition(number int, view *engineView) *worker.Partition {
	cfg := worker.Config{MaxBatch: 1 + s.random.IntN(20), MaxWait: time.Hour, IdleWait: time.Hour}
	return worker.NewPartition(number, cfg, view, view, nil, s.log)
}

// atEnd reports whether the worker has counted its partition to the end.
func (w *workerTask) atEnd(b *broker) bool {
	return w.err == nil && w.next == b.partitions[w.partition].end()
}

// overlapWorkers starts a worker on a random partition. A worker that is already there does not know that it lost it.
func (s *simulation) overlapWorkers() {
	partition, others := s.random.IntN(len(s.broker.partitions)), 0
	for _, w := range s.workers {
		if w.partition == partition {
			others++
		}
	}
	if others == maxWorkers {
		return
	}
	if others > 0 {
		s.occur(workersOverlap)
	}
	s.addWorker(partition)
}

// killWorker ends a random worker. Its partition may have others, or none for a while.
func (s *simulation) killWorker() {
	if len(s.workers) == 0 {
		return
	}
	s.occur(workerKilled)
	i := s.random.IntN(len(s.workers))
	s.workers[i].kill()
	s.workers = slices.Delete(s.workers, i, i+1)
}

// engineView is the topic and the click store as one worker sees them.
type engineView struct {
	*simulation
	schema.PositionStore // nil: a worker does not call its other methods
	yield                yield
	inserting            bool // between the check of the position and the insert
	connected            bool // to the partition's leader
	restarts             int  // of the leader, when the worker connected
}

// reconnect returns an error if the partition's leader has restarted since the last request: the connection is lost,
// and a worker must not take the log for the one that it knew.
func (v *engineView) reconnect(partition int) error {
	if partition >= len(v.broker.partitions) {
		return errNetwork
	}
	restarts := v.broker.partitions[partition].restarts
	lost := v.connected && v.restarts != restarts
	v.connected, v.restarts = true, restarts
	if lost {
		return errNetwork
	}
	return nil
}

func (v *engineView) Fetch(_ context.Context, partition int, offset int64, _ time.Duration,
	each func(stream.Record) error) (lag int64, err error) {
	if err := v.yield(); err != nil {
		return 0, err
	}
	if v.fault(failedFetch, 20) {
		return 0, errNetwork
	}
	if err := v.reconnect(partition); err != nil {
		return 0, err
	}
	log := v.broker.partitions[partition]
	records := log.records
	if offset > log.end() || offset < log.start {
		return 0, stream.ErrOffsetOutOfRange
	}
	end := min(offset+1+v.random.Int64N(20), int64(len(records)))
	remaining := v.random.Int64N(20) // records until the fetch may break
	for ; offset < end; offset++ {
		if err := each(stream.Record{Offset: offset, Value: records[offset]}); err != nil {
			return int64(len(records)) - offset, err
		}
		if remaining--; remaining == 0 && v.fault(brokenFetch, 4) {
			return 0, errNetwork
		}
	}
	return int64(len(records)) - offset, v.yield() // while the worker's batch is incomplete
}

func (v *engineView) Offsets(_ context.Context, partition int) (start, end int64, err error) {
	if err := v.reconnect(partition); err != nil {
		return 0, 0, err
	}
	log := v.broker.partitions[partition]
	if v.broken.trustsLogs { // a log without counted records needs no check
		return log.end(), log.end(), nil
	}
	return log.start, log.end(), nil
}

func (v *engineView) ProduceDead(_ context.Context, batch *stream.Batch) error {
	return fmt.Errorf("%d records do not decode", batch.Len())
}

func (v *engineView) Position(ctx context.Context, partition int) (schema.Position, error) {
	if err := v.yield(); err != nil {
		return schema.Position{}, err
	}
	if v.fault(failedPosition, 20) {
		return schema.Position{}, errNetwork
	}
	position, err := v.store.Position(ctx, partition)
	if earlier := v.store.earlierPositions(partition); len(earlier) > 0 && v.fault(staleRead, 20) {
		position = earlier[v.random.IntN(len(earlier))]
	}
	if yieldErr := v.yield(); yieldErr != nil {
		return position, yieldErr
	}
	return position, err
}

func (v *engineView) LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	if err := v.yield(); err != nil {
		return nil, err
	}
	marks, err := v.store.LaneMarks(ctx, lanes)
	if v.broken.forgetsMoves {
		clear(marks)
	}
	return marks, err
}

func (v *engineView) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	if err := v.yield(); err != nil {
		return err
	}
	if v.fault(failedInsert, 8) {
		return errNetwork
	}
	err := v.insert(ctx, batch)
	if err == nil && v.fault(lostInsertAnswer, 8) {
		err = errNetwork
	}
	if yieldErr := v.yield(); yieldErr != nil {
		return yieldErr
	}
	return err
}

// insert inserts in one step, as SQLite does, or checks the position first, as ClickHouse does, and anything may happen
// in between.
func (v *engineView) insert(ctx context.Context, batch *schema.ClickBatch) error {
	if !v.store.twoSteps {
		return v.store.InsertClicks(ctx, batch)
	}
	// a stale read shows that the store is one, where a token that is known is never followed by another one
	cluster := false
	for lost := range maxSends {
		stale := v.isStale()
		cluster = cluster || stale
		if err := v.store.check(batch, stale); err != nil {
			return err
		}
		if cluster {
			lost = 0
		}
		expires := v.seconds + insertWithin
		v.inserting = true
		if err := v.yield(); err != nil {
			return err
		}
		v.inserting = false
		if v.seconds > expires && !v.broken.neverExpires {
			v.occur(expiredInsert)
			return schema.Errorf(schema.CodeUnavailable, "the insert has expired")
		}
		if v.store.insertOnce(batch, lost) {
			return nil
		}
		v.occur(repeatedToken)
		if v.store.counted(batch) {
			return nil
		}
	}
	return schema.Errorf(schema.CodeUnavailable, "the store does not have the batch")
}

// isStale reports whether to read from a replica that has not the latest inserts.
func (v *engineView) isStale() bool { return v.fault(staleRead, 5) }

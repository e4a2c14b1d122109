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

// maxWorkers is how many workers at once think that a partition is theirs.
const maxWorkers = 3

// counter is a worker that counts a partition.
type counter struct {
	*task
	partition int
	next      int64 // what its last step said
	err       error
}

// addWorker starts another worker on a partition, whether or not it has some.
func (s *simulation) addWorker(partition int) {
	view := &downlink{simulation: s, ClickStore: &s.store}
	p := s.newPartition(partition, view)
	w := &counter{partition: partition}
	w.task = start(func(pause pause) {
		view.pause = pause
		w.next, w.err = p.Step(context.Background())
		s.note("step", partition, w.next, w.err)
		if schema.ErrorCode(w.err) == schema.CodeConflict {
			s.happened[overtakenWorker]++
		}
	})
	s.workers = append(s.workers, w)
}

func (s *simulation) newPartition(number int, view *downlink) *worker.Partition {
	cfg := worker.Config{MaxBatch: 1 + s.random.IntN(20), MaxWait: time.Hour, IdleWait: time.Hour}
	return worker.NewPartition(number, cfg, view, view, nil, s.log)
}

// finished reports whether the worker has counted its partition to the end.
func (w *counter) finished(b *broker) bool {
	return w.err == nil && w.next == int64(len(b.partitions[w.partition]))
}

// overlapWorkers starts a worker on a partition, also if there is one that does not know that it lost it.
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
		s.happened[workersOverlap]++
	}
	s.addWorker(partition)
}

// killWorker ends a worker. Its partition may be left to others, or be without any for a while.
func (s *simulation) killWorker() {
	if len(s.workers) == 0 {
		return
	}
	s.happened[workerKilled]++
	i := s.random.IntN(len(s.workers))
	s.workers[i].kill()
	s.workers = slices.Delete(s.workers, i, i+1)
}

// downlink is the topic and the click store as one worker sees them.
type downlink struct {
	*simulation
	schema.ClickStore
	pause pause
}

func (d *downlink) Fetch(_ context.Context, partition int, offset int64, _ time.Duration,
	each func(stream.Record) error) (lag int64, err error) {
	if err := d.pause(); err != nil {
		return 0, err
	}
	if d.fault(fetchFailure, 20) {
		return 0, errNetwork
	}
	records := d.broker.partitions[partition]
	end := min(offset+1+d.random.Int64N(20), int64(len(records)))
	broken := d.random.Int64N(20) // after so many records, if at all
	for ; offset < end; offset++ {
		if err := each(stream.Record{Offset: offset, Value: records[offset]}); err != nil {
			return int64(len(records)) - offset, err
		}
		if broken--; broken == 0 && d.fault(fetchBreak, 4) {
			return 0, errNetwork
		}
	}
	return int64(len(records)) - offset, d.pause() // with a batch that is half built
}

func (d *downlink) Offsets(_ context.Context, partition int) (first, next int64, err error) {
	return 0, int64(len(d.broker.partitions[partition])), nil
}

func (d *downlink) ProduceDead(_ context.Context, batch *stream.Batch) error {
	return fmt.Errorf("%d clicks are not readable", batch.Len())
}

func (d *downlink) Position(ctx context.Context, partition int) (schema.Position, error) {
	if err := d.pause(); err != nil {
		return schema.Position{}, err
	}
	if d.fault(positionFailure, 20) {
		return schema.Position{}, errNetwork
	}
	position, err := d.ClickStore.Position(ctx, partition)
	if pauseErr := d.pause(); pauseErr != nil {
		return position, pauseErr
	}
	return position, err
}

func (d *downlink) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	if err := d.pause(); err != nil {
		return err
	}
	if d.fault(insertFailure, 8) {
		return errNetwork
	}
	err := d.ClickStore.InsertClicks(ctx, batch)
	if err == nil && d.fault(insertAnswerLost, 8) {
		err = errNetwork
	}
	if pauseErr := d.pause(); pauseErr != nil {
		return pauseErr
	}
	return err
}

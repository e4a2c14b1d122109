package spool

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	// maxBatchBytes keeps a batch below the one megabyte that brokers accept by default, even if it does not compress.
	maxBatchBytes = 768 << 10
	// linger is the pause between two batches of a lane, in which clicks accumulate. A lane with backlog clicks or more
	// does not pause. One without clicks waits for the next one and ships it at once.
	linger  = 100 * time.Millisecond
	backlog = 4096
	// After a batch of at most fewClicks all clicks go to the first lane, after a batch of manyClicks or more to all
	// lanes.
	fewClicks, manyClicks = 16, 256
	// drainTimeout bounds how long Run ships pending clicks after its context is done.
	drainTimeout = 10 * time.Second
	maxPause     = 2 * time.Second // between attempts while the broker does not answer
	// maxTimeError is how far a batch's timestamp may be from the time of an attempt to send it.
	maxTimeError = time.Minute
	// rebindAfter is how long a lane's partition must be missing before the lane gets another one. In this time workers
	// finish the records that they have fetched from the old partition. It is twice as long as an insert remains valid.
	rebindAfter = time.Minute
)

// Topic is the topic of clicks, or on a machine without a broker the writer of ingest/count.
type Topic interface {
	// Partitions returns the number of partitions.
	Partitions(ctx context.Context) (int, error)
	// Produce appends the batch to a partition and returns nil only once the batch is durable. After an error the batch
	// may or may not be there, or may arrive later. stream.ErrRefused if the batch is never accepted as it is, and
	// stream.ErrNoPartition if the topic's metadata does not have the partition.
	Produce(ctx context.Context, partition int, batch *stream.Batch) error
}

// Shipper sends the clicks of a spool to the topic. It sends each lane in order, always to the same partition, with one
// batch in flight, and repeats a batch until it is acknowledged. Therefore a consumer can recognize every repetition by
// the highest seq that it has seen of the lane.
//
// Three things may change between two attempts. The timestamp follows the clock, which may have been wrong. A batch
// that the topic never accepts is sent in parts. A lane whose partition is gone for good gets another one;
// ARCHITECTURE.md says how consumers then count each click once.
type Shipper struct {
	spool    *Spool
	topic    Topic
	log      *slog.Logger
	shipped  atomic.Uint64
	failures atomic.Uint64
}

// NewShipper returns a shipper of spool's clicks.
func NewShipper(spool *Spool, topic Topic, log *slog.Logger) *Shipper {
	return &Shipper{spool: spool, topic: topic, log: log}
}

// Shipped returns the number of clicks that the broker has acknowledged.
func (s *Shipper) Shipped() uint64 { return s.shipped.Load() }

// Failures returns the number of failed attempts.
func (s *Shipper) Failures() uint64 { return s.failures.Load() }

// Run ships clicks until ctx is done. Then it continues until no click is pending, for at most drainTimeout. Clicks
// that are still pending stay in the spool for the next process.
func (s *Shipper) Run(ctx context.Context) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, cancel) })()
	var lanes sync.WaitGroup
	for _, l := range s.spool.Lanes() {
		lanes.Go(func() { s.runLane(ctx, sending, l) })
	}
	lanes.Wait()
}

// runLane ships one lane. It stops waiting for clicks when ctx is done, and sending them when sending is done.
func (s *Shipper) runLane(ctx, sending context.Context, lane *Lane) {
	var batch stream.Batch
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = maxPause
	failing := false
	for {
		last := lane.seq.Load()
		n, err := s.Ship(sending, lane, &batch)
		switch {
		case err != nil && sending.Err() != nil:
			return
		case err != nil:
			s.failures.Add(1)
			if !failing {
				s.log.Warn("cannot ship clicks, retrying", "lane", lane.ID().Number, "error", err)
			}
			failing = true
			stream.Sleep(sending, pause.NextBackOff())
			continue
		case failing:
			s.log.Info("shipping clicks again", "lane", lane.ID().Number, "pending", lane.Pending())
			failing = false
			pause.Reset()
		}
		switch {
		case n >= manyClicks:
			s.spool.quiet.Store(false)
		case n > 0 && n <= fewClicks:
			s.spool.quiet.Store(true)
		}
		switch {
		case n == 0 && lane.Recovered():
			if err := lane.retire(); err != nil {
				s.log.Error("cannot remove recovered spool lane", "error", err)
			}
			return
		case n == 0 && ctx.Err() != nil:
			return
		case n == 0 && lane.seq.Load() == last: // an idle lane costs nothing
			lane.awaitClick(ctx, last)
		case n == 0 || lane.Pending() < backlog:
			stream.Sleep(ctx, linger)
		}
		if await := s.spool.cfg.Await; await != nil {
			await(ctx)
		}
	}
}

// Ship makes one attempt to send a batch of the lane's clicks. It returns the number of clicks acknowledged, which is 0
// without an error if there are none to send. The caller passes the same batch in every call for a lane: after an error
// it holds the clicks that the broker may or may not have, and the next call sends them again.
func (s *Shipper) Ship(ctx context.Context, lane *Lane, batch *stream.Batch) (int, error) {
	now := s.spool.cfg.now()
	if batch.Len() == 0 {
		batch.Reset(now)
		if lane.Read(batch, lane.maxBatch) == 0 {
			lane.oldest.Store(0)
			return 0, nil
		}
		lane.noteOldest(batch)
	}
	if now.Sub(batch.Time).Abs() > maxTimeError {
		batch.SetTime(now)
	}
	partition, err := s.partition(ctx, lane)
	if err != nil {
		return 0, err
	}
	if err := s.topic.Produce(ctx, partition, batch); err != nil {
		return 0, s.resolve(ctx, lane, batch, err)
	}
	lane.lost = false
	n := batch.Len()
	batch.Reset(time.Time{})
	s.shipped.Add(uint64(n))
	err = lane.Acknowledge()
	if lane.Pending() == 0 { // else the next batch has what is the oldest then
		lane.oldest.Store(0)
	}
	return n, err
}

// noteOldest notes the time of the first click of a batch that is not empty.
func (l *Lane) noteOldest(batch *stream.Batch) {
	var first schema.Click
	if schema.DecodeClick(batch.Value(0), &first) == nil {
		l.oldest.Store(max(1, first.ClickedAt.UnixMilli()))
	}
}

// resolve changes what would make the next attempt fail as the last one, whose error it returns.
func (s *Shipper) resolve(ctx context.Context, lane *Lane, batch *stream.Batch, err error) error {
	switch {
	case errors.Is(err, stream.ErrRefused):
		return errors.Join(err, s.split(lane, batch))
	case errors.Is(err, stream.ErrNoPartition):
		return errors.Join(err, s.rebind(ctx, lane))
	}
	return err
}

// split makes the lane's batches smaller. A click that is too large by itself goes to the refused ones. An earlier
// attempt to send the whole batch may still succeed: consumers drop the repetitions.
func (s *Shipper) split(lane *Lane, batch *stream.Batch) error {
	if batch.Len() > 1 {
		lane.maxBatch = min(lane.maxBatch, batch.Size()) / 2
		batch.Drop()
		lane.rewind()
		return nil
	}
	if err := s.spool.keepRefused(lane.id, batch.Value(0)); err != nil {
		return err
	}
	s.log.Error("the topic does not accept a click, setting it aside", "lane", lane.id.Number, "incarnation",
		lane.id.Incarnation,
		"bytes", batch.Size())
	lane.maxBatch = s.spool.cfg.batchBytes()
	batch.Drop()
	return lane.Acknowledge()
}

// rebind gives the lane another partition if the topic has not had the lane's for some time: it was created again with
// fewer partitions.
func (s *Shipper) rebind(ctx context.Context, lane *Lane) error {
	count, err := s.topic.Partitions(ctx)
	bound, _ := lane.Partition()
	if err != nil || count < 1 || count > bound {
		lane.lost = false
		return err
	}
	if !lane.lost {
		lane.lost, lane.lostAt = true, s.spool.cfg.Uptime()
	}
	if s.spool.cfg.Uptime()-lane.lostAt < rebindAfter {
		return nil
	}
	lane.lost = false
	to := choosePartition(lane.id, count)
	s.log.Error("the topic has lost a lane's partition, the lane gets another one", "lane", lane.id.Number,
		"incarnation", lane.id.Incarnation, "lost", bound, "partition", to)
	return lane.bind(to)
}

// partition returns the lane's partition, which it chooses before the lane's first batch.
func (s *Shipper) partition(ctx context.Context, lane *Lane) (int, error) {
	if p, ok := lane.Partition(); ok {
		return p, nil
	}
	count, err := s.topic.Partitions(ctx)
	if err != nil {
		return 0, err
	}
	if count < 1 {
		return 0, errors.New("the topic has no partitions")
	}
	p := choosePartition(lane.ID(), count)
	return p, lane.bind(p)
}

// choosePartition distributes the lanes of one process evenly, starting at a partition that its incarnation determines.
func choosePartition(lane schema.Lane, partitions int) int {
	start := binary.LittleEndian.Uint64(lane.Incarnation[:])
	return int((start + uint64(lane.Number)) % uint64(partitions))
}

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
	// maxBatchBytes keeps a batch below the megabyte that brokers accept by default, however badly it compresses.
	maxBatchBytes = 768 << 10
	// linger is how long clicks gather between batches, unless a backlog of them is there already.
	linger  = 20 * time.Millisecond
	backlog = 4096
	// drainTimeout bounds how long a stopping process tries to ship what is pending; the rest waits in the files.
	drainTimeout = 10 * time.Second
	maxPause     = 2 * time.Second // between attempts while the broker does not answer
)

// producer is the topic as a shipper sees it.
type producer interface {
	// Partitions returns how many partitions the topic has.
	Partitions(ctx context.Context) (int, error)
	// Produce appends the batch to a partition and returns nil only once it is durable there. After an error it may
	// be there or not, or arrive later.
	Produce(ctx context.Context, partition int, batch *stream.Batch) error
}

// Shipper sends the clicks of a spool's lanes to the topic: each lane in order, to one partition, one batch at a time,
// and the same batch until it is acknowledged. That is what lets a consumer drop repetitions by the lane's high-water
// mark.
type Shipper struct {
	spool    *Spool
	producer producer
	log      *slog.Logger
	shipped  atomic.Uint64
	failures atomic.Uint64
}

// NewShipper returns a shipper for the lanes of spool.
func NewShipper(spool *Spool, producer producer, log *slog.Logger) *Shipper {
	return &Shipper{spool: spool, producer: producer, log: log}
}

// Shipped returns how many clicks the broker has acknowledged, Failures how many attempts went wrong.
func (s *Shipper) Shipped() uint64  { return s.shipped.Load() }
func (s *Shipper) Failures() uint64 { return s.failures.Load() }

// Run ships until ctx is done, then goes on for a bounded time until nothing is pending.
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

func (s *Shipper) runLane(ctx, sending context.Context, lane *Lane) {
	var batch stream.Batch
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = maxPause
	failing := false
	for {
		n, err := s.Ship(sending, lane, &batch)
		switch {
		case err != nil && sending.Err() != nil:
			return
		case err != nil:
			s.failures.Add(1)
			if !failing {
				s.log.Warn("clicks cannot be shipped, trying again", "lane", lane.ID().Number, "error", err)
			}
			failing = true
			stream.Sleep(sending, pause.NextBackOff())
			continue
		case failing:
			s.log.Info("clicks are shipped again", "lane", lane.ID().Number, "pending", lane.Pending())
			failing = false
			pause.Reset()
		}
		switch {
		case n > 0 && lane.Pending() >= backlog:
		case n == 0 && lane.Leftover():
			if err := lane.retire(); err != nil {
				s.log.Error("leftover spool lane cannot be removed", "error", err)
			}
			return
		case n == 0 && ctx.Err() != nil:
			return
		default:
			stream.Sleep(ctx, linger)
		}
	}
}

// Ship makes one attempt to send the lane's next clicks and returns how many were acknowledged: 0 without an error if
// there were none. batch belongs to the lane; while it holds clicks they are what is sent, so that a batch whose fate
// is unknown is sent again as it was.
func (s *Shipper) Ship(ctx context.Context, lane *Lane, batch *stream.Batch) (int, error) {
	if batch.Len() == 0 {
		batch.Reset(time.Now())
		if lane.Read(batch, maxBatchBytes) == 0 {
			return 0, nil
		}
	}
	partition, err := s.partition(ctx, lane)
	if err != nil {
		return 0, err
	}
	if err := s.producer.Produce(ctx, partition, batch); err != nil {
		return 0, err
	}
	n := batch.Len()
	batch.Reset(time.Time{})
	s.shipped.Add(uint64(n))
	return n, lane.Acknowledge()
}

// partition returns the lane's partition, chosen when its first batch is sent and kept for good.
func (s *Shipper) partition(ctx context.Context, lane *Lane) (int, error) {
	if p, ok := lane.Partition(); ok {
		return p, nil
	}
	count, err := s.producer.Partitions(ctx)
	if err != nil {
		return 0, err
	}
	if count < 1 {
		return 0, errors.New("the topic has no partitions")
	}
	p := choosePartition(lane.ID(), count)
	return p, lane.bind(p)
}

// choosePartition spreads the lanes of one process evenly, and processes by their random incarnations.
func choosePartition(lane schema.Lane, partitions int) int {
	start := binary.LittleEndian.Uint64(lane.Incarnation[:])
	return int((start + uint64(lane.Number)) % uint64(partitions))
}

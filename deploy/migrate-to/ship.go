package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"linkstream/schema/stream"
)

const (
	maxBatchBytes = 512 << 10              // below the brokers' default message.max.bytes
	fetchWait     = 500 * time.Millisecond // for a record
	maxPause      = 2 * time.Second        // between attempts while an engine does not answer
	progressEvery = 10 * time.Second
)

var errFull = errors.New("the batch is full") // ends a fetch

// oldTopic is the part of stream.Client that reads.
type oldTopic interface {
	Partitions(ctx context.Context) (int, error)
	Offsets(ctx context.Context, partition int) (start, end int64, err error)
	Fetch(ctx context.Context, partition int, offset int64, wait time.Duration, each func(stream.Record) error) (lag int64, err error)
}

// targetTopic is the part of stream.Client that writes.
type targetTopic interface {
	Partitions(ctx context.Context) (int, error)
	Produce(ctx context.Context, partition int, batch *stream.Batch) error
}

// shipment is how far a partition of the old topic is sent. One goroutine uses it at a time.
type shipment struct {
	from, to int
	next     int64 // the offset of the next record to send
	shipped  int64
	lag      int64
}

// ship sends the records of all partitions until ctx is done, or, if toEnd, to the end of the topic. While an engine does not
// answer, it tries again.
func (m *move) ship(ctx context.Context, old oldTopic, toEnd bool) error {
	var partitions int
	err := persist(ctx, func() (err error) {
		partitions, err = old.Partitions(ctx)
		return err
	}, m.warn("read the old topic"))
	if err != nil {
		return nil // ctx is done
	}
	group, ctx := errgroup.WithContext(ctx)
	for p := range partitions {
		s := m.shipments[p]
		if s == nil {
			s = &shipment{from: p, to: p % m.partitions}
			m.shipments[p] = s
		}
		group.Go(func() error { return m.shipPartition(ctx, old, s, toEnd) })
	}
	return group.Wait()
}

func (m *move) shipPartition(ctx context.Context, old oldTopic, s *shipment, toEnd bool) error {
	said := time.Now()
	for ctx.Err() == nil {
		batch := new(stream.Batch) // an attempt to send the last one may still read it
		var end int64
		var err error
		next := s.next
		if toEnd {
			if _, end, err = old.Offsets(ctx, s.from); err == nil && s.next >= end {
				return nil
			}
		}
		if err == nil {
			batch.Reset(time.Now())
			next, err = s.fetch(ctx, old, batch)
		}
		if err != nil {
			if ctx.Err() == nil {
				m.warn("read the old topic")(err, 0)
				stream.Sleep(ctx, fetchWait)
			}
			continue
		}
		if err := m.send(ctx, s.to, batch); err != nil {
			return err
		}
		if ctx.Err() != nil { // it may have been sent or not
			return nil
		}
		s.next, s.shipped = next, s.shipped+int64(batch.Len())
		if time.Since(said) > progressEvery {
			m.log.Info("sending clicks to the new topic", "partition", s.from, "sent", s.shipped, "waiting", s.lag)
			said = time.Now()
		}
	}
	return nil
}

// fetch adds the next records to a batch and returns the offset after them.
func (s *shipment) fetch(ctx context.Context, old oldTopic, batch *stream.Batch) (next int64, err error) {
	next = s.next
	s.lag, err = old.Fetch(ctx, s.from, s.next, fetchWait, func(r stream.Record) error {
		if batch.Len() > 0 && batch.Size()+len(r.Value) > maxBatchBytes {
			return errFull
		}
		batch.Append(nil, r.Value)
		next = r.Offset + 1
		return nil
	})
	switch {
	case errors.Is(err, stream.ErrOffsetOutOfRange): // counted records were deleted
		start, end, err := old.Offsets(ctx, s.from)
		if err == nil && (s.next < start || s.next > end) {
			return start, nil
		}
		return next, err
	case errors.Is(err, errFull):
		return next, nil
	}
	return next, err
}

// send appends a batch to a partition of the new topic, in parts if it is too large, or returns when ctx is done. A batch
// precedes the next one, so repetitions stand behind what they repeat.
func (m *move) send(ctx context.Context, partition int, batch *stream.Batch) error {
	err := persist(ctx, func() error {
		err := m.topic.Produce(ctx, partition, batch)
		if errors.Is(err, stream.ErrTooLarge) {
			return backoff.Permanent(err)
		}
		return err
	}, m.warn("write the new topic"))
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case batch.Len() == 1:
		return fmt.Errorf("a record of %d bytes: %w", batch.Size(), err)
	}
	for _, part := range halves(batch) {
		if err := m.send(ctx, partition, part); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// halves returns the first and the second half of a batch.
func halves(batch *stream.Batch) [2]*stream.Batch {
	parts := [2]*stream.Batch{new(stream.Batch), new(stream.Batch)}
	for i := range parts {
		parts[i].Reset(batch.Time)
	}
	for i := range batch.Len() {
		parts[2*i/batch.Len()].Append(nil, batch.Value(i))
	}
	return parts
}

// persist calls attempt until it succeeds, fails for good, or ctx is done.
func persist(ctx context.Context, attempt func() error, failed backoff.Notify) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = maxPause
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, attempt() },
		backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0), backoff.WithNotify(failed))
	return err
}

func (m *move) warn(what string) backoff.Notify {
	return func(err error, _ time.Duration) { m.log.Warn("cannot "+what+", trying again", "error", err) }
}

// shipped returns the number of records that were sent.
func (m *move) shipped() (n int64) {
	for _, s := range m.shipments {
		n += s.shipped
	}
	return n
}

package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	fetchWait   = time.Second
	fetchRetry  = time.Second
	maxAttempts = 5 // to read a part of a log while others change it
)

// Topic is the part of stream.Client that is read.
type Topic interface {
	Partitions(ctx context.Context) (int, error)
	Offsets(ctx context.Context, partition int) (start, end int64, err error)
	Fetch(ctx context.Context, partition int, offset int64, wait time.Duration,
		each func(stream.Record) error) (lag int64, err error)
	DeadOffsets(ctx context.Context) (start, end int64, err error)
	FetchDead(ctx context.Context, offset int64, wait time.Duration, each func(stream.Record) error) (lag int64, err error)
}

// Partition describes the records of a partition of the clicks topic that are not counted yet.
type Partition struct {
	Partition int    `json:"partition"`
	From      int64  `json:"from"`
	End       int64  `json:"end"`
	Note      string `json:"note,omitempty"` // why the records are not those behind the store's position
}

var errRead = errors.New("read") // ends a fetch after what was wanted

// readTopic adds the clicks that the store has not passed. For each partition it reads the position first, and then the
// records behind it: clicks before the position are in the counts that are read later.
func (p *pass) readTopic(ctx context.Context) error {
	n, err := p.Topic.Partitions(ctx)
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		p.report.Notes = append(p.report.Notes, "The topic of clicks does not exist.")
		return nil
	}
	if err != nil {
		return err
	}
	for partition := range n {
		if err := p.readPartition(ctx, partition); err != nil {
			return fmt.Errorf("read partition %d: %w", partition, err)
		}
	}
	return nil
}

func (p *pass) readPartition(ctx context.Context, number int) error {
	at, err := p.Positions.Position(ctx, number)
	if err != nil {
		return err
	}
	start, end, err := p.Topic.Offsets(ctx, number)
	if errors.Is(err, kafka.UnknownTopicOrPartition) { // deleted a moment ago
		p.report.Notes = append(p.report.Notes, fmt.Sprintf("Partition %d of the topic of clicks does not exist.", number))
		return nil
	}
	if err != nil {
		return err
	}
	part := Partition{Partition: number, From: start, End: end}
	if part.Note, err = p.compareLog(ctx, number, at, start, end); err != nil {
		return err
	}
	if part.Note == "" && at.Next > start {
		part.From = max(start, at.Last.Offset+1) // records from there to the position were dropped, and cost little
	}
	p.report.Partitions = append(p.report.Partitions, part)
	offsets := func(ctx context.Context) (int64, int64, error) { return p.Topic.Offsets(ctx, number) }
	fetch := func(ctx context.Context, offset int64, each func(stream.Record) error) error {
		_, err := p.Topic.Fetch(ctx, number, offset, fetchWait, each)
		return err
	}
	return read(ctx, part.From, end, offsets, fetch, func(value []byte) {
		if id, seq, ok := identify(value); ok {
			l := p.lane(id)
			l.topic = l.topic.with(seq, seq)
		}
	})
}

// compareLog returns "" if the store's position belongs to the log or the store has no position; otherwise a note for
// operators: all records of the log have yet to be counted. A worker checks more closely, see package worker.
func (p *pass) compareLog(ctx context.Context, number int, at schema.Position, start, end int64) (note string,
	err error) {
	switch {
	case at.Next <= start: // nothing in the log was counted
		return "", nil
	case at.Next > end:
		return fmt.Sprintf("the log ends before the position %d: it was replaced, or lost its end", at.Next), nil
	case at.Last.Offset < start: // deleted
		return "", nil
	}
	same := false
	_, err = p.Topic.Fetch(ctx, number, at.Last.Offset, fetchWait, func(r stream.Record) error {
		id, seq, ok := identify(r.Value)
		same = ok && r.Offset == at.Last.Offset && id == at.Last.Lane && seq == at.Last.Seq
		return errRead
	})
	switch {
	case errors.Is(err, errRead) && !same:
		return fmt.Sprintf("the record at offset %d is not the last counted click: the log was replaced, or lost its end",
			at.Last.Offset), nil
	// counted and deleted since the position was read
	case errors.Is(err, errRead), errors.Is(err, stream.ErrOffsetOutOfRange):
		return "", nil
	}
	return "", err
}

// readDead adds dead letters of lanes that have uncounted clicks.
func (p *pass) readDead(ctx context.Context) error {
	start, end, err := p.Topic.DeadOffsets(ctx)
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the dead letter topic: %w", err)
	}
	p.report.DeadLetters = uint64(end - start)
	fetch := func(ctx context.Context, offset int64, each func(stream.Record) error) error {
		_, err := p.Topic.FetchDead(ctx, offset, fetchWait, each)
		return err
	}
	err = read(ctx, start, end, p.Topic.DeadOffsets, fetch, func(value []byte) {
		if id, seq, ok := identify(value); ok && p.lanes[id] != nil {
			p.lanes[id].setAside = p.lanes[id].setAside.with(seq, seq)
		}
	})
	if err != nil {
		return fmt.Errorf("read the dead letter topic: %w", err)
	}
	return nil
}

// identify returns the lane and the number of a click, which may be a click that cannot be counted.
func identify(value []byte) (lane schema.Lane, seq uint64, ok bool) {
	var click schema.Click
	if schema.DecodeClick(value, &click) != nil || click.Seq > schema.MaxSeq {
		return lane, 0, false
	}
	return click.Lane, click.Seq, true
}

// read calls each for the values of the records from an offset to before end. Records that are deleted during the call
// are left out: they were counted, or their numbers will be missing.
func read(ctx context.Context, next, end int64, offsets func(context.Context) (start, end int64, err error),
	fetch func(ctx context.Context, offset int64, each func(stream.Record) error) error, each func(value []byte)) error {
	for failures := 0; next < end; {
		before := next
		err := fetch(ctx, next, func(r stream.Record) error {
			if r.Offset >= end {
				return errRead
			}
			each(r.Value)
			next = r.Offset + 1
			return nil
		})
		if errors.Is(err, errRead) {
			return nil
		}
		if errors.Is(err, stream.ErrOffsetOutOfRange) {
			var start int64
			if start, _, err = offsets(ctx); err == nil && start > next {
				next = start
				continue
			}
			err = errors.Join(err, fmt.Errorf("the log changed while it was read, at offset %d", next))
		}
		if err == nil && next == before {
			err = fmt.Errorf("there is no record at offset %d", next)
		}
		if err == nil {
			failures = 0
			continue
		}
		if failures++; failures == maxAttempts || ctx.Err() != nil {
			return err
		}
		stream.Sleep(ctx, fetchRetry)
	}
	return nil
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"linkstream/ingest/agent"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// errBatchFull ends a fetch whose other records are for the next batch.
var errBatchFull = errors.New("the batch is full")

// topic is the click log as a worker sees it.
type topic interface {
	// Fetch calls each for the records of a partition from offset on, waiting up to wait for the first.
	Fetch(ctx context.Context, partition int, offset int64, wait time.Duration, each func(stream.Record) error) (lag int64, err error)
	// Offsets returns the offsets of the partition's first record and of the one that will come next.
	Offsets(ctx context.Context, partition int) (first, next int64, err error)
	// ProduceDead keeps what could not be read as a click.
	ProduceDead(ctx context.Context, batch *stream.Batch) error
}

// Partition counts the clicks of one partition, one batch at a time. Its state is a copy of what the store says, and
// is thrown away whenever the two may differ. It belongs to one goroutine.
type Partition struct {
	number int
	cfg    Config
	topic  topic
	store  schema.ClickStore
	log    *slog.Logger
	agents *agent.Cache
	status *status

	known    bool            // whether position is what the store says
	position schema.Position // its marks run ahead while a batch is built
	batch    schema.ClickBatch
	dead     stream.Batch
	click    schema.Click // scratch
}

// NewPartition returns a counter for a partition of topic.
func NewPartition(number int, cfg Config, topic topic, store schema.ClickStore, log *slog.Logger) *Partition {
	return newPartition(number, cfg, topic, store, log, &status{})
}

func newPartition(number int, cfg Config, topic topic, store schema.ClickStore, log *slog.Logger, status *status) *Partition {
	return &Partition{number: number, cfg: cfg, topic: topic, store: store, log: log.With("partition", number),
		agents: agent.NewCache(), status: status}
}

// Step counts one batch: it reads what follows the partition's position, drops what the lane marks have seen, and
// stores the rest together with the new marks and position. It returns the offset up to which the partition is
// counted. After an error the next Step begins again from what the store says, which is right whatever happened.
func (p *Partition) Step(ctx context.Context) (next int64, err error) {
	if !p.known {
		if p.position, err = p.store.Position(ctx, p.number); err != nil {
			return 0, fmt.Errorf("read position of partition %d: %w", p.number, err)
		}
		if p.position.Marks == nil {
			p.position.Marks = make(map[schema.Lane]uint64)
		}
		p.status.setFailure(p.number, nil)
	}
	p.known = false // until this batch is stored
	p.batch.Reset(p.number, p.position.Next)
	p.dead.Reset(time.Now())
	if err := p.fill(ctx); err != nil {
		return 0, err
	}
	if err := p.keepDead(ctx); err != nil {
		return 0, err
	}
	if p.batch.Len() > 0 {
		if err := p.store.InsertClicks(ctx, &p.batch); err != nil {
			return 0, fmt.Errorf("insert %d clicks of partition %d from %d: %w", p.batch.Len(), p.number, p.batch.Base, err)
		}
	}
	p.status.counted.Add(uint64(p.batch.Len()))
	p.position.Next = p.batch.Next
	p.known = true
	return p.position.Next, nil
}

// fill builds the batch: until it has MaxBatch clicks or MaxWait has passed since the first record.
func (p *Partition) fill(ctx context.Context) error {
	wait, started := p.cfg.IdleWait, time.Time{}
	for p.batch.Len() < p.cfg.MaxBatch && wait > 0 {
		before := p.batch.Next
		lag, err := p.topic.Fetch(ctx, p.number, p.batch.Next, wait, p.add)
		switch {
		case errors.Is(err, errBatchFull):
			return nil
		case errors.Is(err, stream.ErrOffsetOutOfRange):
			return p.skipDeleted(ctx, err)
		case err != nil:
			return err
		}
		p.status.setLag(p.number, lag)
		if p.batch.Next == before {
			return nil // nothing came
		}
		if started.IsZero() {
			started = time.Now()
		}
		wait = p.cfg.MaxWait - time.Since(started)
	}
	return nil
}

// add puts a record into the batch, unless its lane's mark has seen it.
func (p *Partition) add(r stream.Record) error {
	if p.batch.Len() >= p.cfg.MaxBatch {
		return errBatchFull
	}
	p.batch.Next = r.Offset + 1
	c := &p.click
	if err := schema.DecodeClick(r.Value, c); err != nil {
		p.log.Warn("record is not a click", "offset", r.Offset, "bytes", len(r.Value), "error", err)
		p.dead.Append(nil, r.Value)
		return nil
	}
	mark := p.position.Marks[c.Lane]
	if c.Seq <= mark {
		p.status.repeated.Add(1)
		return nil
	}
	if c.Seq > mark+1 {
		p.status.missing.Add(c.Seq - mark - 1)
		p.log.Error("clicks are missing from the topic", "lane", c.Lane.Number, "incarnation", c.Lane.Incarnation,
			"after", mark, "before", c.Seq, "offset", r.Offset)
	}
	p.position.Marks[c.Lane] = c.Seq
	a := p.agents.Parse(c.UserAgent)
	b := &p.batch
	b.Offset = append(b.Offset, r.Offset)
	b.Lane, b.Seq = append(b.Lane, c.Lane), append(b.Seq, c.Seq)
	b.LinkID, b.ClickedAt = append(b.LinkID, c.LinkID), append(b.ClickedAt, c.ClickedAt)
	b.Device, b.Browser = append(b.Device, a.Device), append(b.Browser, a.Browser)
	return nil
}

// keepDead stores what could not be read before the position moves past it. A repetition is possible and harmless.
func (p *Partition) keepDead(ctx context.Context) error {
	if p.dead.Len() == 0 {
		return nil
	}
	if err := p.topic.ProduceDead(ctx, &p.dead); err != nil {
		return fmt.Errorf("keep %d records that are not clicks: %w", p.dead.Len(), err)
	}
	p.status.dead.Add(uint64(p.dead.Len()))
	return nil
}

// skipDeleted moves the batch past records that the topic's retention has deleted. A topic that ends before the
// position is another topic than the one that was counted: only an operator can tell what is right then.
func (p *Partition) skipDeleted(ctx context.Context, cause error) error {
	first, next, err := p.topic.Offsets(ctx, p.number)
	if err != nil {
		return err
	}
	if first <= p.batch.Next {
		return fmt.Errorf("the topic has records %d to %d, but %d have been counted: %w", first, next, p.batch.Next, cause)
	}
	p.status.missing.Add(uint64(first - p.batch.Next))
	p.log.Error("records were deleted before they were counted", "from", p.batch.Next, "to", first)
	p.batch.Next = first
	return nil
}

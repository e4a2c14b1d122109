package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/enrich"
	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	// What is outside of these does not fit into every store.
	firstYear, lastYear = 1970, 2148
	maxSeq              = math.MaxInt64
	// maxDeadBytes keeps what could not be read below the megabyte that brokers accept by default.
	maxDeadBytes = 512 << 10
)

var (
	errBatchFull = errors.New("the batch is full") // ends a fetch whose other records are for the next batch
	errRange     = fmt.Errorf("clicked_at_ms is not of %d to %d, or seq is above %d", firstYear, lastYear, maxSeq)
)

// topic is the click log as a worker sees it.
type topic interface {
	// Fetch calls each for the records of a partition from offset on, waiting up to wait for the first. It returns how
	// many records the partition has beyond them, also if each returned an error.
	Fetch(ctx context.Context, partition int, offset int64, wait time.Duration,
		each func(stream.Record) error) (lag int64, err error)
	// Offsets returns the offsets of the partition's first record and of the one that will come next.
	Offsets(ctx context.Context, partition int) (first, next int64, err error)
	// ProduceDead keeps what could not be read as a click.
	ProduceDead(ctx context.Context, batch *stream.Batch) error
}

// Partition counts the clicks of one partition, one batch at a time. Its state is a copy of what the store says, and
// is thrown away whenever the two may differ. It belongs to one goroutine.
type Partition struct {
	number   int
	cfg      Config
	topic    topic
	store    schema.ClickStore
	enricher *enrich.Enricher
	log      *slog.Logger
	status   *status

	known bool                   // whether marks and batch.Base are what the store says
	marks map[schema.Lane]uint64 // run ahead of the store while a batch is built; that of lane is in mark
	lane  schema.Lane            // of the last click: most come in batches of one
	mark  uint64
	batch schema.ClickBatch
	dead  stream.Batch
	tally tally        // of the batch
	click schema.Click // scratch
}

// NewPartition returns a counter for a partition of topic. Without countries it knows none.
func NewPartition(number int, cfg Config, topic topic, store schema.ClickStore, countries *enrich.Countries,
	log *slog.Logger) *Partition {
	return newPartition(number, cfg, topic, store, countries, log, newStatus(metrics.NewSet()))
}

func newPartition(number int, cfg Config, topic topic, store schema.ClickStore, countries *enrich.Countries,
	log *slog.Logger, status *status) *Partition {
	return &Partition{number: number, cfg: cfg, topic: topic, store: store, enricher: enrich.New(countries),
		log: log.With("partition", number), status: status}
}

// Step counts one batch: it reads what follows the partition's position, drops what the lane marks have seen, and
// stores the rest together with the new marks and position. It returns the offset up to which the partition is
// counted. After an error the next Step begins again from what the store says, which is right whatever happened.
func (p *Partition) Step(ctx context.Context) (next int64, err error) {
	if !p.known {
		if err := p.recall(ctx); err != nil {
			return 0, err
		}
	}
	p.known = false // until this batch is stored
	p.tally = tally{}
	p.dead.Reset(time.Now())
	if err := p.fill(ctx); err != nil {
		return 0, err
	}
	if err := p.keepDead(ctx); err != nil {
		return 0, err
	}
	// Without a click nothing is stored: the store stays at the batch's Base, and the batch grows in the next Step.
	if clicks := p.batch.Len(); clicks > 0 {
		if err := p.store.InsertClicks(ctx, &p.batch); err != nil {
			return 0, fmt.Errorf("insert %d clicks of partition %d from %d: %w", clicks, p.number, p.batch.Base, err)
		}
		p.tally.counted = clicks
		p.batch.Reset(p.number, p.batch.Next)
	}
	p.status.add(p.tally)
	p.known = true
	return p.batch.Next, nil
}

// recall begins again from what the store says.
func (p *Partition) recall(ctx context.Context) error {
	position, err := p.store.Position(ctx, p.number)
	if err != nil {
		return fmt.Errorf("read position of partition %d: %w", p.number, err)
	}
	p.marks = position.Marks
	if p.marks == nil {
		p.marks = make(map[schema.Lane]uint64)
	}
	p.lane, p.mark = schema.Lane{}, p.marks[schema.Lane{}]
	p.batch.Reset(p.number, position.Next)
	p.status.take(p.number)
	return nil
}

// fill builds the batch: until it has MaxBatch clicks or MaxWait has passed since the first record.
func (p *Partition) fill(ctx context.Context) error {
	wait, started := p.cfg.IdleWait, time.Time{}
	for p.batch.Len() < p.cfg.MaxBatch && wait > 0 {
		before := p.batch.Next
		lag, err := p.topic.Fetch(ctx, p.number, p.batch.Next, wait, p.add)
		if err == nil || errors.Is(err, errBatchFull) {
			p.status.setLag(p.number, lag)
		}
		switch {
		case errors.Is(err, errBatchFull):
			return nil
		case errors.Is(err, stream.ErrOffsetOutOfRange):
			return p.skipDeleted(ctx, err)
		case err != nil:
			return err
		case p.batch.Next == before:
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
	c := &p.click
	err := schema.DecodeClick(r.Value, c)
	if year := c.ClickedAt.Year(); err == nil && (year < firstYear || year > lastYear || c.Seq > maxSeq) {
		err = errRange
	}
	if err != nil {
		return p.addDead(r, err)
	}
	p.batch.Next = r.Offset + 1
	if c.Lane != p.lane {
		p.marks[p.lane] = p.mark
		p.lane, p.mark = c.Lane, p.marks[c.Lane]
	}
	if c.Seq <= p.mark {
		p.tally.repeated++
		return nil
	}
	if c.Seq > p.mark+1 {
		p.tally.missing += int(c.Seq - p.mark - 1)
		p.log.Error("clicks are missing from the topic", "lane", c.Lane.Number, "incarnation", c.Lane.Incarnation,
			"after", p.mark, "before", c.Seq, "offset", r.Offset)
	}
	p.mark = c.Seq
	source := p.enricher.Enrich(c)
	b := &p.batch
	if b.Len() == 0 {
		b.Time = r.Time
	}
	b.Offset = append(b.Offset, r.Offset)
	b.Lane, b.Seq = append(b.Lane, c.Lane), append(b.Seq, c.Seq)
	b.LinkID, b.AccountID = append(b.LinkID, c.LinkID), append(b.AccountID, c.AccountID)
	b.ClickedAt = append(b.ClickedAt, c.ClickedAt)
	b.Device, b.Browser = append(b.Device, source.Device), append(b.Browser, source.Browser)
	b.Referrer, b.Country = append(b.Referrer, source.Referrer), append(b.Country, source.Country)
	return nil
}

// addDead sets a record aside that is not a click.
func (p *Partition) addDead(r stream.Record, cause error) error {
	if p.dead.Len() == 0 {
		p.log.Warn("records are not clicks", "first", r.Offset, "bytes", len(r.Value), "error", cause)
	} else if p.dead.Size()+len(r.Value) > maxDeadBytes {
		return errBatchFull
	}
	p.dead.Append(nil, r.Value)
	p.tally.dead++
	p.batch.Next = r.Offset + 1
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
	return nil
}

// skipDeleted moves the batch past records that the topic's retention has deleted. A topic that ends before the
// position is another topic than the one that was counted: only an operator can tell what is right then.
func (p *Partition) skipDeleted(ctx context.Context, cause error) error {
	first, next, err := p.topic.Offsets(ctx, p.number)
	switch {
	case err != nil:
		return err
	case p.batch.Next > next:
		return fmt.Errorf("the topic ends at %d, but has been counted to %d: it is not the same: %w", next, p.batch.Next, cause)
	case p.batch.Next >= first:
		return cause // its leader has changed in the meantime
	}
	p.tally.deleted += int(first - p.batch.Next)
	p.log.Error("records were deleted before they were counted", "from", p.batch.Next, "to", first)
	p.batch.Next = first
	return nil
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/enrich"
	"linkstream/schema"
	"linkstream/schema/span"
	"linkstream/schema/stream"
)

const (
	// Limits that every store can represent.
	firstYear, lastYear = 1970, 2148
	// maxDeadBytes keeps a batch of dead letters below the brokers' default message.max.bytes of 1 MiB.
	maxDeadBytes = 512 << 10
	// A batch that has this share of MaxBatch when MaxWait is over is filled for busyWaits times MaxWait, while records come.
	busyShare, busyWaits = 50, 4
	// maxMarks bounds the lanes in memory. Every start of an edge begins new ones.
	maxMarks = 100_000
)

var (
	errBatchFull  = errors.New("batch is full") // ends a fetch; its other records belong to the next batch
	errNewLane    = errors.New("new lane")      // ends a fetch; it is repeated when the lane's mark is known
	errNewClick   = errors.New("new click before the position")
	errOutOfRange = fmt.Errorf("clicked_at_ms is not in %d to %d, or seq is above %d", firstYear, lastYear, uint64(schema.MaxSeq))
)

// topic is the part of stream.Client that a Partition uses.
type topic interface {
	// Fetch calls each for the records of a partition from offset on. It waits up to wait for the first record. It
	// returns how many records follow those that each accepted, also when each returned an error.
	Fetch(ctx context.Context, partition int, offset int64, wait time.Duration,
		each func(stream.Record) error) (lag int64, err error)
	// Offsets returns the partition's log start offset and log end offset.
	Offsets(ctx context.Context, partition int) (start, end int64, err error)
	// ProduceDead appends values to the dead letter topic.
	ProduceDead(ctx context.Context, batch *stream.Batch) error
}

// Partition counts the clicks of one partition, one batch at a time. Its state is a copy of the store's, and is loaded
// again whenever the two may differ. It belongs to one goroutine.
type Partition struct {
	number   int
	cfg      Config
	topic    topic
	store    schema.ClickStore
	enricher *enrich.Enricher
	log      *slog.Logger
	status   *status

	loaded  bool                   // last and the batch's base are the store's
	last    schema.CountedRecord   // the last click that the store has counted
	marks   map[schema.Lane]uint64 // of lanes that were met, ahead of the store while a batch is built; lane's own is in mark
	inLane  bool                   // lane and mark are set
	lane    schema.Lane            // lane of the last click; clicks of a lane arrive in runs
	mark    uint64
	batch   schema.ClickBatch
	dead    stream.Batch
	results results      // of the batch
	trace   trace        // of the batch
	click   schema.Click // scratch
}

// NewPartition returns a Partition without metrics of its own. countries may be nil.
func NewPartition(number int, cfg Config, topic topic, store schema.ClickStore, countries *enrich.Countries,
	log *slog.Logger) *Partition {
	return newPartition(number, cfg, topic, store, countries, log, newStatus(metrics.NewSet()))
}

func newPartition(number int, cfg Config, topic topic, store schema.ClickStore, countries *enrich.Countries,
	log *slog.Logger, status *status) *Partition {
	return &Partition{number: number, cfg: cfg, topic: topic, store: store, enricher: enrich.New(countries),
		log: log.With("partition", number), status: status}
}

// Step counts one batch: it fetches the records at the partition's position, drops clicks at or below their lane's mark,
// and inserts the others together with the new marks and position. It returns the offset of the next record to count.
// After an error the next Step loads the position again, whatever happened to the insert.
func (p *Partition) Step(ctx context.Context) (next int64, err error) {
	if !p.loaded {
		if err := p.loadPosition(ctx); err != nil {
			return 0, err
		}
	}
	p.loaded = false // until this batch is inserted
	p.results = results{}
	p.dead.Reset(time.Now())
	p.trace = trace{}
	err = p.fetchBatch(ctx)
	ctx = p.trace.built(ctx, p, err)
	if err != nil {
		return 0, err
	}
	if err := p.produceDead(ctx); err != nil {
		return 0, err
	}
	// A batch without clicks is not inserted: the store stays at its Base, and the next Step adds to it.
	if p.batch.Len() > 0 {
		if err := p.insert(ctx); err != nil {
			return 0, err
		}
	}
	p.status.add(p.results)
	p.loaded = true
	return p.batch.Next, nil
}

// insert counts the batch and begins the next one.
func (p *Partition) insert(ctx context.Context) error {
	b, clicks := &p.batch, p.batch.Len()
	if err := p.checkGaps(ctx); err != nil {
		return err
	}
	began := time.Now()
	ctx, s := span.Start(ctx, "insert", span.Internal)
	s.SetInt("linkstream.clicks", int64(clicks))
	err := p.store.InsertClicks(ctx, b)
	s.Fail(err)
	s.End()
	p.status.inserts.Observe(time.Since(began))
	if err != nil {
		return fmt.Errorf("insert %d clicks of partition %d from offset %d: %w", clicks, p.number, b.Base, err)
	}
	p.results.counted = clicks
	p.last = schema.CountedRecord{Offset: b.Offset[clicks-1], Lane: b.Lane[clicks-1], Seq: b.Seq[clicks-1]}
	if len(p.marks) > maxMarks { // the store has them
		p.forgetMarks()
	}
	p.status.setCounted(p.number, p.last.Offset)
	p.resetBatch(b.Epoch, b.Next)
	return nil
}

// fetchBatch fetches until the batch has MaxBatch clicks or its time is over, see waitAfter.
func (p *Partition) fetchBatch(ctx context.Context) error {
	wait, started := p.cfg.IdleWait, time.Time{}
	for p.batch.Len() < p.cfg.MaxBatch && wait > 0 {
		before := p.batch.Next
		p.trace.fetching()
		lag, err := p.topic.Fetch(p.trace.within(ctx), p.number, p.batch.Next, wait, p.addRecord)
		p.trace.fetched(ctx, lag)
		if err == nil || errors.Is(err, errBatchFull) {
			p.status.setLag(p.number, lag)
		}
		switch {
		case errors.Is(err, errBatchFull):
			return nil
		case errors.Is(err, errNewLane):
			if err := p.loadMark(p.trace.within(ctx)); err != nil {
				return err
			}
		case errors.Is(err, errNewClick):
			if err := p.beginEpochAfterNewClick(ctx); err != nil {
				return err
			}
		case errors.Is(err, stream.ErrOffsetOutOfRange):
			return p.skipDeleted(ctx, err)
		case err != nil:
			return err
		case p.batch.Next == before:
			return nil // no record within wait
		}
		if started.IsZero() {
			started = time.Now()
		}
		wait = p.waitAfter(time.Since(started))
	}
	return nil
}

// waitAfter returns how long to wait for more records at an age of the batch, 0 or less if it is inserted now. Clicks of a busy
// partition cost less in larger batches: more of them are on the same links.
func (p *Partition) waitAfter(age time.Duration) time.Duration {
	wait := p.cfg.MaxWait - age
	if wait <= 0 && p.batch.Len() >= p.cfg.MaxBatch/busyShare {
		wait = min(p.cfg.MaxWait, busyWaits*p.cfg.MaxWait-age)
	}
	return wait
}

// addRecord checks a record and adds its click to the batch, or drops it if its lane's mark has reached it.
func (p *Partition) addRecord(r stream.Record) error {
	if p.batch.Len() >= p.cfg.MaxBatch {
		return errBatchFull
	}
	p.trace.record()
	c := &p.click
	if err := decode(r.Value, c); err != nil {
		return p.addDead(r, err)
	}
	passed := p.passed(r.Offset)
	if !p.inLane || c.Lane != p.lane {
		mark, known := p.marks[c.Lane]
		if !known {
			return errNewLane
		}
		if p.inLane {
			p.marks[p.lane] = p.mark
		}
		p.inLane, p.lane, p.mark = true, c.Lane, mark
	}
	if c.Seq > p.mark && passed {
		return errNewClick
	}
	p.batch.Next = r.Offset + 1
	if c.Seq <= p.mark {
		if !passed {
			p.results.repeated++
		}
		return nil
	}
	b := &p.batch
	if c.Seq > p.mark+1 {
		p.results.missing += int(c.Seq - p.mark - 1)
		b.Gaps = append(b.Gaps, schema.Gap{Lane: c.Lane, SeqRange: schema.SeqRange{First: p.mark + 1, Last: c.Seq - 1},
			Partition: p.number, Offset: r.Offset, Found: time.Now()})
		p.log.Error("clicks are missing from the topic", "lane", c.Lane.Number, "incarnation", c.Lane.Incarnation,
			"after", p.mark, "before", c.Seq, "offset", r.Offset)
	}
	p.mark = c.Seq
	source := p.enricher.Enrich(c)
	if b.Len() == 0 {
		b.Time = r.Time
	}
	b.Offset = append(b.Offset, r.Offset)
	b.Lane, b.Seq = append(b.Lane, c.Lane), append(b.Seq, c.Seq)
	b.LinkID, b.AccountID = append(b.LinkID, c.LinkID), append(b.AccountID, c.AccountID)
	b.ClickedAt = append(b.ClickedAt, c.ClickedAt)
	b.Device, b.Browser = append(b.Device, source.Device), append(b.Browser, source.Browser)
	b.Referrer, b.Country = append(b.Referrer, source.Referrer), append(b.Country, source.Country)
	b.OS, b.Language = append(b.OS, source.OS), append(b.Language, source.Language)
	return nil
}

// decode decodes a record that every store can count.
func decode(value []byte, c *schema.Click) error {
	err := schema.DecodeClick(value, c)
	if year := c.ClickedAt.Year(); err == nil && (year < firstYear || year > lastYear || c.Seq > schema.MaxSeq) {
		err = errOutOfRange
	}
	return err
}

// loadMark loads the mark of the lane of p.click, which is met for the first time. There may be a million lanes, of which
// few are in use, so each is loaded when it is met. The mark is that of all partitions: the lane may have been bound to another
// one that the topic has lost, and clicks that were counted there may come again here.
//
// The mark may be of a later moment than the position. Then another worker has counted, and the insert fails.
func (p *Partition) loadMark(ctx context.Context) error {
	mark, err := p.store.LaneMark(ctx, p.click.Lane)
	if err != nil {
		return err
	}
	p.marks[p.click.Lane] = mark
	return nil
}

// forgetMarks forgets the marks that were loaded, which must not be ahead of the store, or must be discarded.
func (p *Partition) forgetMarks() {
	p.marks, p.inLane = make(map[schema.Lane]uint64), false
}

// addDead adds a record that is not a click to the dead letters.
func (p *Partition) addDead(r stream.Record, cause error) error {
	if p.passed(r.Offset) { // it is there already
		p.batch.Next = r.Offset + 1
		return nil
	}
	if p.dead.Len() == 0 {
		p.log.Warn("moving records that are not clicks to the dead letter topic", "first", r.Offset,
			"bytes", len(r.Value), "error", cause)
	} else if p.dead.Size()+len(r.Value) > maxDeadBytes {
		return errBatchFull
	}
	p.dead.Append(nil, r.Value)
	p.results.dead++
	p.batch.Next = r.Offset + 1
	return nil
}

// produceDead produces the dead letters before the position moves past their records. A retry may repeat them.
func (p *Partition) produceDead(ctx context.Context) error {
	if p.dead.Len() == 0 {
		return nil
	}
	if err := p.topic.ProduceDead(ctx, &p.dead); err != nil {
		return fmt.Errorf("produce %d dead letters: %w", p.dead.Len(), err)
	}
	return nil
}

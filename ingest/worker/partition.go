package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.opentelemetry.io/otel/attribute"
	otel "go.opentelemetry.io/otel/trace"

	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/span"
	"linkstream/schema/stream"
)

const (
	// maxDeadBytes keeps a batch of dead letters below the brokers' default message.max.bytes of 1 MiB.
	maxDeadBytes = 512 << 10
	// A batch of fewClicks waits for a part of MaxWait only, and one that has a busyShare-th of MaxBatch for another part:
	// see waitAfter.
	fewClicks, fewPart  = 32, 6
	busyShare, busyPart = 50, 2
	// lastWait is the wait of the final fetch, which takes only records that are there. 0 would end the batch.
	lastWait = time.Millisecond
	// maxNewLanes bounds the lanes whose marks are loaded together. They are looked for in at most MaxBatch records.
	maxNewLanes = 10_000
)

var (
	errBatchFull = errors.New("batch is full") // ends a fetch; its other records belong to the next batch
	errNewLanes  = errors.New("new lanes")     // ends a fetch; it is repeated when their marks are known
	errNewClick  = errors.New("new click before the position")
	errForged    = fmt.Errorf("the click's number is more than %d ahead of its lane's mark", schema.MaxLead)
)

// topic is the part of stream.Client that a Partition uses.
type topic interface {
	// Fetch calls each for the records of a partition from offset on. It waits up to wait for the first record. It returns
	// the number of records behind the last one that each accepted, also when each returned an error.
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
	number int
	cfg    Config
	topic  topic
	store  store
	log    *slog.Logger
	status *status

	loaded  bool                 // last and the batch's base are the store's
	last    schema.CountedRecord // the last click that the store has counted
	read    int64                // the offset after the last record that a fetch has passed on
	builder *count.Builder
	batch   *schema.ClickBatch // the builder's
	// whose marks are loaded next: those of the lanes of the record at batch.Next and of records behind it
	lanes      map[schema.Lane]bool
	dead       stream.Batch
	results    results       // of the batch
	insertTook time.Duration // the last one
	trace      trace         // of the batch
	click      schema.Click  // scratch
}

// NewPartition returns a Partition without metrics of its own. countries may be nil.
func NewPartition(number int, cfg Config, topic topic, store store, countries *enrich.Countries,
	log *slog.Logger) *Partition {
	return newPartition(number, cfg, topic, store, countries, log, newStatus(metrics.NewSet()))
}

func newPartition(number int, cfg Config, topic topic, store store, countries *enrich.Countries,
	log *slog.Logger, status *status) *Partition {
	log = log.With("partition", number)
	builder := count.NewBuilder(countries, log)
	builder.Late = cfg.Late
	return &Partition{number: number, cfg: cfg, topic: topic, store: store, builder: builder,
		batch: &builder.Batch, log: log,
		status: status, lanes: make(map[schema.Lane]bool)}
}

// Step counts one batch: it fetches the records at the partition's position, drops clicks at or below their lane's
// mark, and inserts the others together with the new marks and position. It returns the offset of the next record to
// count. After an error the next Step loads the position again: the insert may or may not have succeeded.
func (p *Partition) Step(ctx context.Context) (next int64, err error) {
	if !p.loaded {
		if err := p.loadPosition(ctx); err != nil {
			return 0, err
		}
	}
	p.loaded = false // until this batch is inserted
	p.results, p.builder.Missing = results{}, 0
	clear(p.lanes)
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
	p.results.missing = p.builder.Missing
	p.status.add(p.results)
	p.status.setNext(p.number, p.batch.Next)
	p.loaded = true
	return p.batch.Next, nil
}

// insert counts the batch and begins the next one.
func (p *Partition) insert(ctx context.Context) error {
	b, clicks := p.batch, p.batch.Len()
	if err := p.checkGaps(ctx); err != nil {
		return err
	}
	began := time.Now()
	ctx, s := span.Start(ctx, "insert", otel.SpanKindInternal)
	s.SetAttributes(attribute.Int64("linkstream.clicks", int64(clicks)))
	err := p.store.InsertClicks(ctx, b)
	span.Fail(s, err)
	s.End()
	p.insertTook = time.Since(began)
	p.status.Inserts.Observe(p.insertTook)
	if err != nil {
		return fmt.Errorf("insert %d clicks of partition %d from offset %d: %w", clicks, p.number, b.Base, err)
	}
	p.results.counted = clicks
	p.last = b.Last()
	p.builder.Stored()
	p.resetBatch(b.Epoch, b.Next)
	return nil
}

// fetchBatch fetches until the batch has MaxBatch clicks or its time is over, see waitAfter.
func (p *Partition) fetchBatch(ctx context.Context) error {
	wait, started := p.cfg.IdleWait, time.Time{}
	for p.batch.Len() < p.cfg.MaxBatch && wait > 0 {
		before := p.batch.Next
		p.trace.fetching()
		p.read = before
		lag, err := p.topic.Fetch(p.trace.within(ctx), p.number, p.batch.Next, wait, p.readRecord)
		p.trace.fetched(ctx, lag)
		if err == nil || errors.Is(err, errBatchFull) {
			p.status.setEnd(p.number, p.read+lag)
		}
		switch {
		case errors.Is(err, errBatchFull):
			return nil
		case (err == nil || errors.Is(err, errNewLanes)) && len(p.lanes) > 0:
			if err := p.loadMarks(p.trace.within(ctx)); err != nil {
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
		age := time.Since(started)
		wait = p.waitAfter(age)
		if pause := p.pauseAfter(age); lag == 0 && pause > 0 {
			stream.Sleep(ctx, pause)
			wait = max(lastWait, p.waitAfter(time.Since(started)))
		}
	}
	return nil
}

// pauseAfter returns how long to leave records in the topic at an age of the batch. A fetch costs nearly as much as an
// insert, however few records it gets. So as long as there are few, there is one at each part of MaxWait after which
// the batch may be inserted, and one at its end.
func (p *Partition) pauseAfter(age time.Duration) time.Duration {
	pause := p.waitAfter(age)
	if p.batch.Len() >= fewClicks || p.cfg.Pause == 0 {
		return min(pause, p.cfg.Pause)
	}
	for _, part := range []time.Duration{fewPart, busyPart} {
		if look := p.cfg.MaxWait/part - age; look > 0 {
			pause = min(pause, look)
		}
	}
	return pause
}

// waitAfter returns how long to wait for more records at an age of the batch, 0 or less if it is inserted now. An
// insert of one click costs the store as much as one of a hundred. So a batch waits the longer the fewer clicks it has,
// which at low rates keeps the store idle. The time of the insert counts towards MaxWait, so that a slow insert does
// not add to the delay. Clicks of a busy partition also cost less in larger batches: more of them are on the same
// links.
func (p *Partition) waitAfter(age time.Duration) time.Duration {
	wait := p.cfg.MaxWait
	switch clicks := p.batch.Len(); {
	case clicks >= max(fewClicks, p.cfg.MaxBatch/busyShare):
		wait /= busyPart
	case clicks >= fewClicks:
		wait /= fewPart
	default:
		wait -= min(p.insertTook, wait/2)
	}
	return wait - age
}

// readRecord adds a record to the batch. Behind the first record of a new lane it looks for other new lanes only.
func (p *Partition) readRecord(r stream.Record) error {
	var err error
	if len(p.lanes) == 0 {
		err = p.addRecord(r)
	} else {
		if count.Decode(r.Value, &p.click) == nil {
			if _, known := p.builder.Counted(&p.click); !known {
				p.lanes[p.click.Lane] = true
			}
		}
		if len(p.lanes) >= maxNewLanes || r.Offset-p.batch.Next >= int64(p.cfg.MaxBatch) {
			err = errNewLanes
		}
	}
	if err == nil {
		p.read = r.Offset + 1
	}
	return err
}

// addRecord checks a record and adds its click to the batch, or drops it if its lane's mark has reached it.
func (p *Partition) addRecord(r stream.Record) error {
	if p.batch.Len() >= p.cfg.MaxBatch {
		return errBatchFull
	}
	p.trace.record()
	c := &p.click
	if err := count.Decode(r.Value, c); err != nil {
		return p.addDead(r, err)
	}
	counted, known := p.builder.Counted(c)
	passed := p.passed(r.Offset)
	switch {
	case !known:
		p.lanes[c.Lane] = true
		return nil
	case !counted && p.builder.Forged(c):
		return p.addDead(r, errForged)
	case !counted && passed:
		return errNewClick
	}
	p.batch.Next = r.Offset + 1
	switch {
	case !counted:
		p.builder.Add(c, count.Record{Partition: p.number, Offset: r.Offset, Time: r.Time})
	case !passed:
		p.results.repeated++
	}
	return nil
}

// loadMarks loads the marks of the lanes that are met for the first time. There may be a million lanes, but few are in
// use. So a lane's mark is loaded when the lane is met, together with the marks of lanes behind it in the same fetch.
// The mark covers all partitions: the lane may have been bound to another one that the topic has lost, and clicks that
// were counted there may come again here.
//
// A mark may be of a later moment than the position. Then another worker has counted, and the insert fails.
func (p *Partition) loadMarks(ctx context.Context) error {
	lanes := slices.Collect(maps.Keys(p.lanes))
	slices.SortFunc(lanes, schema.Lane.Compare)
	marks, err := p.store.LaneMarks(ctx, lanes)
	if err != nil {
		return err
	}
	for i, lane := range lanes {
		p.builder.SetMark(lane, marks[i])
	}
	clear(p.lanes)
	return nil
}

// addDead adds a record that cannot be counted to the dead letters.
func (p *Partition) addDead(r stream.Record, cause error) error {
	if p.passed(r.Offset) { // it is there already
		p.batch.Next = r.Offset + 1
		return nil
	}
	if p.dead.Len() == 0 {
		p.log.Warn("moving records that cannot be counted to the dead letter topic", "first", r.Offset,
			"bytes", len(r.Value), "error", cause)
	} else if p.dead.Size()+len(r.Value) > maxDeadBytes {
		return errBatchFull
	}
	p.dead.Append(nil, r.Value)
	p.results.dead++
	if errors.Is(cause, errForged) {
		p.results.forged++
	}
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

package count

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/groupcommit"
	"linkstream/schema/stream"
)

// writes bound the transactions of a Writer.
var writes = groupcommit.Limits{Batch: 16, Queue: 1 << 16, Timeout: time.Minute}

// Between the beginnings of two transactions there are minPause, and pausePerClick for each click of the first one, but
// at most maxPause. With little traffic a click is counted at once. With much traffic, transactions have more clicks
// and update each row less often.
const (
	minPause      = 100 * time.Millisecond
	pausePerClick = 50 * time.Microsecond
	maxPause      = 700 * time.Millisecond
	// readTime is how long before the end of the pause shippers begin to read their next batches.
	readTime = 10 * time.Millisecond
)

// BatchBytes is how many bytes the batch of a lane should have at most. After a transaction with such a batch there is
// no pause.
const BatchBytes = 8 << 20

// LaneStore is the part of a click store that a Writer uses.
type LaneStore interface {
	// LaneMarks returns the highest number of each lane's counted clicks, 0 without any.
	LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error)
	// InsertClicks is that of a schema.ClickStore that compares marks.
	InsertClicks(ctx context.Context, batch *schema.ClickBatch) error
}

// Writer counts the clicks of a spool on a machine without a broker. To the spool's shipper it is the topic of clicks:
// a batch is accepted once its clicks, the mark of its lane and the webhooks' copies of the clicks are on the disk. A
// shipper that gets no acknowledgement sends the batch again, and the mark drops it. There are no positions: a click is
// counted if and only if its number is at or below the mark.
type Writer struct {
	store   LaneStore
	builder *Builder // of the transaction under way
	queue   *clickQueue
	group   *groupcommit.Group[*stream.Batch]
	metrics Metrics
	failure atomic.Pointer[error] // of the last transaction; nil if it succeeded
	next    atomic.Int64          // when the next transaction may begin: time since epoch
	epoch   time.Time
}

// NewWriter returns a writer that registers its metrics in set. It queues counted clicks for the webhooks in webhooks.
// countries and webhooks may be nil.
func NewWriter(store LaneStore, webhooks schema.ClickHookStore, countries *enrich.Countries, log *slog.Logger,
	set *metrics.Set) *Writer {
	w := &Writer{store: store, builder: NewBuilder(countries, log), queue: newClickQueue(webhooks, countries, log),
		metrics: NewMetrics(set),
		epoch:   time.Now()}
	w.group = groupcommit.New(writes, func(ctx context.Context, lanes []*groupcommit.Call[*stream.Batch]) error {
		batches := make([]*stream.Batch, len(lanes))
		for i, lane := range lanes {
			batches[i] = lane.Value
		}
		for i, err := range w.Count(ctx, batches...) {
			lanes[i].Err = err
		}
		return nil
	})
	return w
}

// Ready returns nil unless the last transaction has failed.
func (w *Writer) Ready() error {
	if failure := w.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// Partitions returns 1: lanes are counted one by one, wherever they come from.
func (w *Writer) Partitions(context.Context) (int, error) { return 1, nil }

// Produce counts a batch of one lane. It returns nil only once the batch is on the disk. stream.ErrRefused if the batch
// has a record that is not a click; the clicks before it may be counted.
func (w *Writer) Produce(ctx context.Context, _ int, batch *stream.Batch) error {
	w.sleep(ctx, 0) // callers that wait for the same transaction wake up together
	_, err := w.group.Submit(ctx, batch)
	return err
}

// Await waits until a shipper should read a lane's next batch: a batch that is read earlier would only wait in Produce,
// with fewer clicks.
func (w *Writer) Await(ctx context.Context) { w.sleep(ctx, readTime) }

// sleep waits until the given time before the next transaction may begin.
func (w *Writer) sleep(ctx context.Context, before time.Duration) {
	if wait := time.Duration(w.next.Load()) - time.Since(w.epoch) - before; wait > 0 {
		stream.Sleep(ctx, wait)
	}
}

// pause sets when the next transaction may begin, after one that counts the builder's batch.
func (w *Writer) pause(began time.Time, lanes []*stream.Batch) {
	pause := min(minPause+time.Duration(w.builder.Batch.Len())*pausePerClick, maxPause)
	if slices.ContainsFunc(lanes, func(lane *stream.Batch) bool { return lane.Size() >= BatchBytes }) {
		pause = 0
	}
	w.next.Store(int64(began.Add(pause).Sub(w.epoch)))
}

// Count counts the batches of some lanes in one transaction, and returns an outcome like Produce's for each. Calls do
// not overlap.
func (w *Writer) Count(ctx context.Context, lanes ...*stream.Batch) []error {
	b, began := w.builder, time.Now()
	b.Batch.Reset(0, 0)
	b.Missing = 0
	stored := false
	defer func() {
		if !stored { // also after a panic: the marks are ahead of the store
			b.Forget()
		}
	}()
	errs, repeated := make([]error, len(lanes)), 0
	for i, lane := range lanes {
		n, err := w.builder.AddLane(ctx, lane, w.store.LaneMarks)
		repeated, errs[i] = repeated+n, err
	}
	w.pause(began, lanes)
	if b.Batch.Len() > 0 {
		if err := w.insert(ctx); err != nil {
			return slices.Repeat([]error{err}, len(lanes))
		}
	}
	stored = true
	w.metrics.Repeated.Add(repeated)
	if err := w.queue.add(ctx, lanes); err != nil {
		return slices.Repeat([]error{w.failed(err)}, len(lanes))
	}
	if errors.Join(errs...) == nil {
		w.failure.Store(nil)
	}
	return errs
}

// insert counts the batch.
func (w *Writer) insert(ctx context.Context) error {
	b := w.builder
	began := time.Now()
	err := w.store.InsertClicks(ctx, &b.Batch)
	w.metrics.Inserts.Observe(time.Since(began))
	if err != nil {
		return w.failed(fmt.Errorf("count %d clicks: %w", b.Batch.Len(), err))
	}
	w.metrics.Counted.Add(b.Batch.Len())
	w.metrics.Missing.Add(b.Missing)
	b.Stored()
	return nil
}

// failed notes the failure of a transaction, and returns it.
func (w *Writer) failed(err error) error {
	w.metrics.Failures.Inc()
	w.failure.Store(&err)
	return err
}

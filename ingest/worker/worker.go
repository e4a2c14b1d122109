// Package worker counts clicks. A Worker is a member of a consumer group and counts the partitions that the group
// assigns to it, each in its own goroutine, one batch after the other:
//
//	click store ───── position ──────▶ load ◀──────────────┐
//	                                    │                  │ error: discard the
//	                                    ▼                  │ state in memory
//	topic ────────── records ───────▶ fetch ◀───────┐      │
//	                                    │           │      │
//	dead letter topic ◀─ not a click ─ check        │      │
//	                                    │           │      │
//	          seq <= the lane's mark ◀─ drop        │      │
//	                                    │           │      │
//	                                  enrich        │      │
//	                                    │           │      │
//	click store ◀─ clicks, marks, ─── insert ───────┼──────┘
//	               new position         │           │
//	                                    ▼           │
//	consumer group ◀─── offset ────── commit ───────┘
//
// The steps of a batch (check, drop and enrich are in package count):
//
//   - fetch: records from the position on, until the batch has MaxBatch clicks or is MaxWait old. A batch of 32 clicks
//     waits for a sixth of MaxWait, a batch of MaxBatch/50 clicks for half of MaxWait.
//   - check: a record that does not decode as a click, is out of range, or has a number that no edge can have reached
//     (forged), goes to the dead letter topic.
//   - drop: a lane's clicks are numbered from 1 without gaps. A number at or below the lane's high-water mark, which is
//     loaded when the lane is first met, is a repetition. A gap is a loss, which is logged and counted, or means that
//     the log was replaced: the worker looks for the last counted click before it inserts what follows a gap.
//   - enrich: the names of its dimensions, from the click's headers and network.
//   - insert: clicks, marks and the new position, all at once. The store refuses a batch that does not follow its
//     position, so of two workers that count the same records one succeeds.
//   - commit: the offset, for tools that show lag. A worker never resumes from it: the store's position is the truth.
//
// Partitions do not share an insert. The store accepts one insert per position, by a token that names the position. An
// insert of several partitions would need a token that conflicts with another worker's insert of any one of them. So at
// low rates edges use one lane each, and batches wait.
package worker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cenkalti/backoff/v5"
	otel "go.opentelemetry.io/otel/trace"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/span"
	"linkstream/schema/stream"
)

const (
	maxBatch = 500_000         // rows per insert that every store accepts
	maxPause = 5 * time.Second // between attempts while the topic or the store does not answer
	// per fetch of an idle partition, which a record ends; the most that stream.Client.Fetch allows
	idleWait = 5 * time.Second
)

// Config bounds a batch.
type Config struct {
	MaxBatch int           // clicks per batch
	MaxWait  time.Duration // from a batch's first record to its insert; less if it has more than a few clicks
	IdleWait time.Duration // for a batch's first record; not a flag
	// between two fetches of a batch that has more than a few clicks; 0: no batch pauses; not a flag
	Pause time.Duration
	Late  bool // lanes may be met in their middle: see count.Builder; not a flag
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{MaxBatch: 100_000, MaxWait: 1500 * time.Millisecond, IdleWait: idleWait, Pause: 50 * time.Millisecond}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.IntVar(&c.MaxBatch, "ingest.max-batch", c.MaxBatch, "maximum number of `clicks` per insert")
	fs.DurationVar(&c.MaxWait, "ingest.max-wait", c.MaxWait, "maximum `time` that a click waits for its batch to fill "+
		"and to be inserted; a sixth of it once there are 32 clicks, half of it on a busy partition")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.MaxBatch < 1 || c.MaxBatch > maxBatch {
		errs = append(errs, fmt.Errorf("-ingest.max-batch: %d is not between 1 and %d", c.MaxBatch, maxBatch))
	}
	if c.MaxWait <= 0 || c.MaxWait > time.Minute {
		errs = append(errs, fmt.Errorf("-ingest.max-wait: %v is not above 0 and at most 1m", c.MaxWait))
	}
	return errors.Join(errs...)
}

// store is the part of schema.PositionStore that a Worker uses, or another store that takes each click once.
type store interface {
	Position(ctx context.Context, partition int) (schema.Position, error)
	LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error)
	InsertClicks(ctx context.Context, batch *schema.ClickBatch) error
}

// group is the part of stream.Client that a Worker uses.
type group interface {
	topic
	Consume(ctx context.Context, onAssigned func(context.Context, int),
		work func(context.Context, stream.Assignment)) error
}

// Worker counts the partitions that its consumer group assigns to it.
type Worker struct {
	cfg       Config
	group     group
	store     store
	countries *enrich.Countries
	log       *slog.Logger
	status    *status
}

// New returns a worker that registers its metrics in set. countries may be nil.
func New(cfg Config, group group, store store, countries *enrich.Countries, log *slog.Logger,
	set *metrics.Set) *Worker {
	return &Worker{cfg: cfg, group: group, store: store, countries: countries, log: log, status: newStatus(set)}
}

// Ready returns nil if the worker is a member of the group and counts each of its partitions without an error. A member
// without a partition is ready: it stands by for the others.
func (w *Worker) Ready() error { return w.status.ready() }

// Lag returns the number of records that wait to be counted in the partitions of this worker, by the last fetches.
func (w *Worker) Lag() int64 { _, lag := w.status.totals(); return lag }

// Run counts until ctx is done. It returns when no insert is under way. A batch that was fetched and not inserted is
// fetched again by the next worker.
func (w *Worker) Run(ctx context.Context) error {
	return w.group.Consume(ctx, w.onAssigned, w.countPartition)
}

// onAssigned records the membership until ctx is done.
func (w *Worker) onAssigned(ctx context.Context, partitions int) {
	w.status.joined(partitions)
	<-ctx.Done()
	w.status.left()
}

func (w *Worker) countPartition(ctx context.Context, a stream.Assignment) {
	p := newPartition(a.Partition, w.cfg, w.group, w.store, w.countries, w.log, w.status)
	defer w.status.removePartition(a.Partition)
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = maxPause
	committed := int64(-1)
	for {
		next, err := p.Step(ctx)
		if ctx.Err() != nil {
			p.trace.end(err)
			return
		}
		w.status.setFailure(a.Partition, err)
		if err != nil {
			p.trace.end(err)
			w.refreshLag(ctx, a)
			w.log.Warn("cannot count a batch, retrying from the stored position", "partition", a.Partition, "error", err)
			stream.Sleep(ctx, pause.NextBackOff())
			continue
		}
		pause.Reset()
		if next == committed {
			p.trace.end(nil)
			continue
		}
		_, s := span.Start(p.trace.batch(ctx), "commit", otel.SpanKindClient)
		err = a.Commit(next)
		span.Fail(s, err)
		s.End()
		p.trace.end(nil)
		if err != nil { // only tools that show lag depend on it
			w.log.Info("cannot commit an offset to the consumer group", "partition", a.Partition, "offset", next, "error", err)
			continue
		}
		committed = next
	}
}

// refreshLag updates the lag while nothing is counted. Before the position is loaded it uses the group's committed
// offset.
func (w *Worker) refreshLag(ctx context.Context, a stream.Assignment) {
	ctx, cancel := context.WithTimeout(ctx, maxPause)
	defer cancel()
	if start, end, err := w.group.Offsets(ctx, a.Partition); err == nil {
		w.status.uncounted(a.Partition, max(start, a.Committed), end)
	}
}

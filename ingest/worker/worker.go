// Package worker counts clicks: a member of a consumer group reads partitions of the topic and inserts what it has not
// seen before into the click store, which is the source of truth for how far each partition has been counted.
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

	"linkstream/ingest/enrich"
	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	maxBatch = 500_000         // rows that one insert may have in every store
	maxPause = 5 * time.Second // between attempts while the topic or the store does not answer
	idleWait = time.Second     // for a first record, before asking again
)

// Config is how clicks are batched.
type Config struct {
	MaxBatch int           // clicks in a batch
	MaxWait  time.Duration // from a batch's first record to its insert
	IdleWait time.Duration // for a first record; not a flag
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{MaxBatch: 100_000, MaxWait: 200 * time.Millisecond, IdleWait: idleWait}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.IntVar(&c.MaxBatch, "ingest.max-batch", c.MaxBatch, "most `clicks` of one insert")
	fs.DurationVar(&c.MaxWait, "ingest.max-wait", c.MaxWait, "longest `time` that a click waits for others to be inserted with")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.MaxBatch < 1 || c.MaxBatch > maxBatch {
		errs = append(errs, fmt.Errorf("-ingest.max-batch: %d is not 1 to %d", c.MaxBatch, maxBatch))
	}
	if c.MaxWait <= 0 || c.MaxWait > time.Minute {
		errs = append(errs, fmt.Errorf("-ingest.max-wait: %v is not above 0 and at most 1m", c.MaxWait))
	}
	return errors.Join(errs...)
}

// group is the consumer group that a worker is a member of.
type group interface {
	topic
	Consume(ctx context.Context, member func(context.Context, int), work func(context.Context, stream.Assignment)) error
}

// Worker counts the partitions that its consumer group gives it.
type Worker struct {
	cfg       Config
	group     group
	store     schema.ClickStore
	countries *enrich.Countries
	log       *slog.Logger
	status    *status
}

// New returns a worker. Without countries it knows none.
func New(cfg Config, group group, store schema.ClickStore, countries *enrich.Countries, log *slog.Logger,
	set *metrics.Set) *Worker {
	return &Worker{cfg: cfg, group: group, store: store, countries: countries, log: log, status: newStatus(set)}
}

// Ready returns nil if the worker counts all partitions that the group has given it, and none of them is failing. One
// that has got none is ready, too: it stands by for others.
func (w *Worker) Ready() error { return w.status.ready() }

// Run counts until ctx is done; a batch under way is finished or left to the next worker.
func (w *Worker) Run(ctx context.Context) error { return w.group.Consume(ctx, w.belong, w.count) }

// belong notes that the worker is a member of the group with so many partitions, until ctx is done.
func (w *Worker) belong(ctx context.Context, partitions int) {
	w.status.join(partitions)
	<-ctx.Done()
	w.status.leave()
}

func (w *Worker) count(ctx context.Context, a stream.Assignment) {
	p := newPartition(a.Partition, w.cfg, w.group, w.store, w.countries, w.log, w.status)
	defer w.status.forget(a.Partition)
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = maxPause
	committed := int64(-1)
	for {
		next, err := p.Step(ctx)
		if ctx.Err() != nil {
			return
		}
		w.status.setFailure(a.Partition, err)
		if err != nil {
			w.log.Warn("counting again from what the store says", "partition", a.Partition, "error", err)
			stream.Sleep(ctx, pause.NextBackOff())
			continue
		}
		pause.Reset()
		if next == committed {
			continue
		}
		if err := a.Commit(next); err != nil { // nothing resumes from it: tools that show lag are behind for a while
			w.log.Info("the consumer group does not know how far a partition is counted", "partition", a.Partition, "error", err)
			continue
		}
		committed = next
	}
}

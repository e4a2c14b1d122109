package invalidation

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const (
	// relayEvery is how often a relay looks for changes of other processes: of those that were killed, and of commands.
	relayEvery = time.Second
	// relayLinger is how long a relay waits for more changes. Clients often create many links at once, and a transaction
	// costs more than a change.
	relayLinger  = 20 * time.Millisecond
	relayTimeout = 15 * time.Second // of taking and publishing a few changes
	publishTime  = 10 * time.Second // of that
	relayPause   = 500 * time.Millisecond
)

// Relay publishes what is in an outbox. Several processes may do so: each change is published by at least one.
type Relay struct {
	outbox  schema.Outbox
	keep    time.Duration
	publish func(context.Context, []schema.Change) error
	wake    chan struct{}
	failing atomic.Int64 // Unix nanoseconds since when changes cannot be published; 0 while they can
	log     *slog.Logger
}

// KeepPublished is how long published changes stay in an outbox that edges read: an edge may not reach the topic's
// leader although the relay does.
const KeepPublished = time.Minute

// NewRelay returns a relay, which keeps published changes in the outbox for a time. It publishes nothing until Run is
// called.
func NewRelay(
	outbox schema.Outbox, keep time.Duration, publish func(context.Context, []schema.Change) error, log *slog.Logger,
) *Relay {
	return &Relay{outbox: outbox, keep: keep, publish: publish, wake: make(chan struct{}, 1), log: log}
}

// RegisterMetrics adds the metrics of the relay to set.
func (r *Relay) RegisterMetrics(set *metrics.Set) {
	const waiting = "linkstream_api_changes_waiting_seconds"
	service.Describe(set, waiting, "Time for which changes of links and domains could not be published; 0 while they "+
		"can be.")
	set.NewGauge(waiting, func() float64 {
		since := r.failing.Load()
		if since == 0 {
			return 0
		}
		return time.Since(time.Unix(0, since)).Seconds()
	})
}

// Wake says that the outbox may have changes. It does not wait.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run publishes changes until ctx is done, then the rest, unless that fails. Changes that it cannot publish wait in the
// outbox.
func (r *Relay) Run(ctx context.Context) {
	every := time.NewTicker(relayEvery)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-r.wake:
			stream.Sleep(ctx, relayLinger)
		case <-every.C:
		case <-ctx.Done():
		}
		err := r.drain(ctx)
		failing := r.failing.Load() != 0
		switch {
		case ctx.Err() != nil:
		case err == nil && failing:
			r.log.Info("publishing changes again")
			r.failing.Store(0)
		case err != nil && !failing:
			r.log.Warn("cannot publish changes, retrying: edges read them from the link store meanwhile", "error", err)
			r.failing.Store(time.Now().UnixNano())
		}
		if err != nil {
			stream.Sleep(ctx, relayPause)
		}
	}
	if err := r.drain(context.WithoutCancel(ctx)); err != nil {
		r.log.Warn("cannot publish the last changes: they wait in the link store for another process", "error", err)
	}
}

// drain publishes changes until nothing waits.
func (r *Relay) drain(ctx context.Context) error {
	for taken := true; taken; {
		var err error
		if taken, err = r.take(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *Relay) take(ctx context.Context) (bool, error) {
	taking, cancel := context.WithTimeout(context.WithoutCancel(ctx), relayTimeout) // to give changes back
	defer cancel()
	return r.outbox.TakeChanges(taking, r.keep, func(changes []schema.Change) error {
		ctx, cancel := context.WithTimeout(ctx, publishTime)
		defer cancel()
		return r.publish(ctx, changes)
	})
}

package redirect

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
)

const (
	maxLookups  = 64 // under way at the same time; further ones wait for their turn
	logInterval = time.Second
)

// What a look-up may come to, other than a value.
var (
	errNotFound    = schema.Errorf(schema.CodeNotFound, "no such link")
	errUnavailable = schema.Errorf(schema.CodeUnavailable, "the link store does not answer")
)

// gate is the way to the store. It bounds how many look-ups are under way and the time each one takes. They run on the
// goroutines of the requests that need them, which are the server's to bound.
type gate struct {
	ctx     context.Context // done once the gate is closed
	cancel  context.CancelFunc
	timeout time.Duration
	slots   chan struct{} // held by look-ups under way

	log      *slog.Logger
	nextLog  atomic.Int64 // Unix nanoseconds
	failures *metrics.Counter
	seconds  *metrics.Histogram
}

func newGate(timeout time.Duration, set *metrics.Set, log *slog.Logger) *gate {
	ctx, cancel := context.WithCancel(context.Background())
	return &gate{
		ctx:      ctx,
		cancel:   cancel,
		timeout:  timeout,
		slots:    make(chan struct{}, maxLookups),
		log:      log,
		failures: set.NewCounter("linkstream_edge_lookup_failures_total"),
		seconds:  set.NewHistogram("linkstream_edge_lookup_seconds"),
	}
}

// ask calls lookup as soon as there is a slot for it. Both together may take no longer than timeout. If lookup fails,
// the cause is logged and the error is errUnavailable.
func (g *gate) ask(lookup func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(g.ctx, g.timeout)
	defer cancel()
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		g.report(fmt.Errorf("%d look-ups are under way", cap(g.slots)))
		return errUnavailable
	}
	start := time.Now()
	err := lookup(ctx)
	g.seconds.UpdateDuration(start)
	if err != nil {
		g.report(err)
		return errUnavailable
	}
	return nil
}

// report counts a failure, and logs one a second: a store that is down fails as often as it is asked.
func (g *gate) report(err error) {
	if g.ctx.Err() != nil {
		return // it failed because the gate was closed
	}
	g.failures.Inc()
	now := time.Now()
	next := g.nextLog.Load()
	if now.UnixNano() >= next && g.nextLog.CompareAndSwap(next, now.Add(logInterval).UnixNano()) {
		g.log.Warn("link store does not answer", "error", err)
	}
}

// close ends the look-ups under way, waits for them, and lets no more begin.
func (g *gate) close() {
	if g.ctx.Err() != nil {
		return // closed already
	}
	g.cancel()
	for range cap(g.slots) {
		g.slots <- struct{}{}
	}
}

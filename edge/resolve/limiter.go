package resolve

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
)

const logInterval = time.Second

// Errors of a look-up.
var (
	errNotFound    = schema.Errorf(schema.CodeNotFound, "no such link")
	errUnavailable = schema.Errorf(schema.CodeUnavailable, "the link store does not answer")
)

// limiter bounds the duration of look-ups, and reports those that fail.
type limiter struct {
	ctx     context.Context // canceled by close
	cancel  context.CancelFunc
	timeout time.Duration
	running sync.RWMutex // held for reading during a look-up
	quota   *quota
	pages   *quota // of pages about links, each of which is a look-up

	log      *slog.Logger
	nextLog  atomic.Int64 // Unix nanoseconds
	failures *metrics.Counter
	seconds  *service.Histogram
}

func newLimiter(cfg *Config, set *metrics.Set, log *slog.Logger) *limiter {
	ctx, cancel := context.WithCancel(context.Background())
	return &limiter{
		ctx:      ctx,
		cancel:   cancel,
		timeout:  cfg.LookupTimeout,
		quota:    newQuota(cfg.MaxUnknownRate, "look-ups of unknown hosts and links", log),
		pages:    newQuota(cfg.MaxUnknownRate, "pages about links", log),
		log:      log,
		failures: service.NewCounter(set, "linkstream_edge_lookup_failures_total", "Look-ups in the link store that failed."),
		seconds: service.NewHistogram(set, "linkstream_edge_lookup_seconds",
			"Seconds that look-ups in the link store take, the wait for their turn included."),
	}
}

// do calls lookup with a context that ends after timeout. If it fails, do logs the cause and returns errUnavailable.
func (l *limiter) do(lookup func(context.Context) error) error {
	l.running.RLock()
	defer l.running.RUnlock()
	ctx, cancel := context.WithTimeout(l.ctx, l.timeout)
	defer cancel()
	start := time.Now()
	err := ctx.Err()
	if err == nil {
		err = lookup(ctx)
		l.seconds.Observe(time.Since(start))
	}
	if err != nil {
		l.report(err)
		return errUnavailable
	}
	return nil
}

// report counts a failure and logs one failure per logInterval: while the store is down, every look-up fails.
func (l *limiter) report(err error) {
	if l.ctx.Err() != nil {
		return // close canceled the look-up
	}
	l.failures.Inc()
	now := time.Now()
	next := l.nextLog.Load()
	if now.UnixNano() >= next && l.nextLog.CompareAndSwap(next, now.Add(logInterval).UnixNano()) {
		l.log.Warn("link store does not answer", "error", err)
	}
}

// close cancels the look-ups under way, waits for them, and makes later ones fail. It is idempotent.
func (l *limiter) close() {
	l.cancel()
	l.running.Lock()
	defer l.running.Unlock()
}

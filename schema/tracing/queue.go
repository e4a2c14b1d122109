package tracing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.opentelemetry.io/otel/sdk/trace"

	"linkstream/schema/service"
)

const (
	maxBatch = 512         // spans of a request
	maxDelay = time.Second // from the end of a span to its request, while the collector keeps up
	logEvery = time.Minute // between two log lines about dropped spans
)

// queue holds ended spans until they are sent. It is the SDK's span processor, whose OnEnd is called by any goroutine.
type queue struct {
	spans   chan trace.ReadOnlySpan
	sender  exporter
	timeout time.Duration
	log     *slog.Logger

	sent, full, failed *metrics.Counter

	closing sync.Once
	closed  chan struct{} // closed by close: OnEnd drops spans from then on
	ended   chan struct{} // closed when run returns
	finish  context.Context
	cancel  context.CancelFunc // of finish: unsent spans are dropped
}

// exporter sends spans.
type exporter interface {
	send(ctx context.Context, spans []trace.ReadOnlySpan) error
	close()
}

func newQueue(cfg Config, sender exporter, set *metrics.Set, log *slog.Logger) *queue {
	service.Describe(set, "linkstream_trace_spans_sent_total", "Spans that the collector has taken.")
	service.Describe(set, "linkstream_trace_spans_dropped_total", "Spans that were dropped, by reason: the queue was full, or sending failed.")
	q := &queue{spans: make(chan trace.ReadOnlySpan, cfg.Queue), sender: sender, timeout: cfg.Timeout, log: log,
		sent:   set.NewCounter("linkstream_trace_spans_sent_total"),
		full:   set.NewCounter(`linkstream_trace_spans_dropped_total{reason="full"}`),
		failed: set.NewCounter(`linkstream_trace_spans_dropped_total{reason="failed"}`),
		closed: make(chan struct{}), ended: make(chan struct{})}
	q.finish, q.cancel = context.WithCancel(context.Background())
	return q
}

// OnStart implements trace.SpanProcessor.
func (q *queue) OnStart(context.Context, trace.ReadWriteSpan) {}

// OnEnd implements trace.SpanProcessor. It does not wait.
func (q *queue) OnEnd(s trace.ReadOnlySpan) {
	select {
	case <-q.closed:
		q.full.Inc()
		return
	default:
	}
	select {
	case q.spans <- s:
	default:
		q.full.Inc()
	}
}

// Shutdown implements trace.SpanProcessor. close has come before.
func (q *queue) Shutdown(context.Context) error { return nil }

// ForceFlush implements trace.SpanProcessor.
func (q *queue) ForceFlush(context.Context) error { return nil }

// close sends the queued spans for at most timeout and drops the rest.
func (q *queue) close(timeout time.Duration) {
	q.closing.Do(func() { close(q.closed) })
	timer := time.AfterFunc(timeout, q.cancel)
	defer timer.Stop()
	<-q.ended
}

// run sends the spans until close.
func (q *queue) run(context.Context) {
	defer close(q.ended)
	defer q.sender.close()
	defer q.cancel()
	var batch []trace.ReadOnlySpan
	var logged time.Time
	for {
		batch = q.next(batch[:0])
		if len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(q.finish, q.timeout)
		err := q.sender.send(ctx, batch)
		cancel()
		if err == nil {
			q.sent.Add(len(batch))
			continue
		}
		q.failed.Add(len(batch))
		if time.Since(logged) >= logEvery {
			logged = time.Now()
			q.log.Warn("cannot send traces, dropping spans", "spans", len(batch), "error", err)
		}
	}
}

// next waits for spans and appends up to maxBatch of them to batch. It appends none if the queue is closed and empty.
func (q *queue) next(batch []trace.ReadOnlySpan) []trace.ReadOnlySpan {
	var delay <-chan time.Time
	closed := q.closed
	for len(batch) < maxBatch {
		if closed == nil { // the queue is closed: do not wait for more
			select {
			case s := <-q.spans:
				batch = append(batch, s)
				continue
			default:
				return batch
			}
		}
		select {
		case s := <-q.spans:
			batch = append(batch, s)
			if delay == nil {
				delay = time.After(maxDelay)
			}
		case <-delay:
			return batch
		case <-closed:
			closed = nil
		}
	}
	return batch
}

package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
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

// exporter is the trace.SpanExporter of a sender. Its processor calls it from one goroutine at a time.
type exporter struct {
	sender *sender
	log    *slog.Logger
	logged time.Time

	waiting            atomic.Int64 // spans that were ended and are neither sent nor dropped
	sent, full, failed *metrics.Counter

	finish context.Context
	cancel context.CancelFunc // of finish: unsent spans are dropped
	ended  chan struct{}      // closed by Shutdown
}

func newExporter(sender *sender, set *metrics.Set, log *slog.Logger) *exporter {
	service.Describe(set, "linkstream_trace_spans_sent_total", "Spans that the collector has taken.")
	service.Describe(set, "linkstream_trace_spans_dropped_total",
		"Spans that were dropped, by reason: the queue was full, or sending failed.")
	e := &exporter{sender: sender, log: log, ended: make(chan struct{}),
		sent:   set.NewCounter("linkstream_trace_spans_sent_total"),
		full:   set.NewCounter(`linkstream_trace_spans_dropped_total{reason="full"}`),
		failed: set.NewCounter(`linkstream_trace_spans_dropped_total{reason="failed"}`)}
	e.finish, e.cancel = context.WithCancel(context.Background())
	return e
}

// ExportSpans implements trace.SpanExporter. It counts and logs failures.
func (e *exporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.finish, cancel)()
	defer e.waiting.Add(-int64(len(spans)))
	err := e.sender.send(ctx, spans)
	if err == nil {
		e.sent.Add(len(spans))
		return nil
	}
	e.failed.Add(len(spans))
	if time.Since(e.logged) >= logEvery {
		e.logged = time.Now()
		e.log.Warn("cannot send traces, dropping spans", "spans", len(spans), "error", err)
	}
	return nil
}

// Shutdown implements trace.SpanExporter. The processor calls it after the last ExportSpans.
func (e *exporter) Shutdown(context.Context) error {
	e.sender.close()
	close(e.ended)
	return nil
}

// bounded counts the spans that its processor would drop without counting them.
type bounded struct {
	trace.SpanProcessor
	exporter *exporter
	most     int
}

// OnEnd implements trace.SpanProcessor. It does not wait.
func (b bounded) OnEnd(s trace.ReadOnlySpan) {
	if b.exporter.waiting.Add(1) > int64(b.most) {
		b.exporter.waiting.Add(-1)
		b.exporter.full.Inc()
		return
	}
	b.SpanProcessor.OnEnd(s)
}

// processor returns the SDK's batch processor of e.
func (e *exporter) processor(cfg Config) trace.SpanProcessor {
	return bounded{trace.NewBatchSpanProcessor(e, trace.WithMaxQueueSize(cfg.Queue),
		trace.WithMaxExportBatchSize(maxBatch),
		trace.WithBatchTimeout(maxDelay), trace.WithExportTimeout(cfg.Timeout)), e, cfg.Queue}
}

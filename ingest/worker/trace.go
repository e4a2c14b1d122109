package worker

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otel "go.opentelemetry.io/otel/trace"

	"linkstream/schema/span"
)

// trace is the spans of a batch: fetch, with decode and the look-ups of marks below it, insert and commit. It begins
// with the batch's first record, so that a partition that waits for clicks is not traced.
type trace struct {
	first time.Time       // record of a fetch
	whole context.Context // below root; nil until there is a record
	root  otel.Span
	fetch context.Context // below the span of all fetches
	all   otel.Span       // all fetches
	lag   int64           // records that follow
}

// fetching is called before a fetch.
func (t *trace) fetching() { t.first = time.Time{} }

// record is called for each record.
func (t *trace) record() {
	if t.first.IsZero() {
		t.first = time.Now()
	}
}

// fetched is called after a fetch. decode is the time from its first record to its last: records are decoded, checked
// and enriched one by one, while the rest arrives.
func (t *trace) fetched(ctx context.Context, lag int64) {
	t.lag = lag
	if t.first.IsZero() || !span.Enabled(ctx) {
		return
	}
	if t.whole == nil {
		t.whole, t.root = span.Root(ctx, "count clicks", otel.SpanKindConsumer, t.first)
		t.fetch, t.all = span.StartAt(t.whole, "fetch", otel.SpanKindClient, t.first)
	}
	_, s := span.StartAt(t.fetch, "decode", otel.SpanKindInternal, t.first)
	s.End()
}

// within returns the context for the spans of fetches.
func (t *trace) within(ctx context.Context) context.Context {
	if t.whole == nil {
		return ctx
	}
	return t.fetch
}

// batch returns the context for the spans of the batch.
func (t *trace) batch(ctx context.Context) context.Context {
	if t.whole == nil {
		return ctx
	}
	return t.whole
}

// built is called when the batch of p is complete, or could not be built. It returns the context for the rest.
func (t *trace) built(ctx context.Context, p *Partition, err error) context.Context {
	if t.whole == nil {
		return ctx
	}
	span.Fail(t.all, err)
	t.all.End()
	b := p.batch
	t.root.SetAttributes(attribute.String("messaging.system", "kafka"),
		attribute.Int64("linkstream.partition", int64(p.number)),
		attribute.Int64("linkstream.offset", b.Base),
		attribute.Int64("linkstream.records", max(b.Next-b.Base, 0)),
		attribute.Int64("linkstream.clicks", int64(b.Len())),
		attribute.Int64("linkstream.repeated", int64(p.results.repeated)),
		attribute.Int64("linkstream.lag_records", t.lag))
	if b.Len() > 0 { // the edge gave its first click's record this time
		t.root.SetAttributes(attribute.Int64("linkstream.lag_ms", time.Since(b.Time).Milliseconds()))
	}
	return t.whole
}

// end ends the spans of the batch.
func (t *trace) end(err error) {
	if t.whole != nil {
		span.Fail(t.root, err)
		t.root.End()
	}
	*t = trace{}
}

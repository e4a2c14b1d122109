// Package span begins OpenTelemetry's spans for requests and batches, in programs that trace.
//
// A context carries the tracer, and the span under way. Without a tracer in the context all functions return at once
// and allocate nothing. Package schema/tracing has the tracer of the programs. The edge has none, so redirects are not
// traced.
package span

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// MaxText bounds a text in a span, in bytes.
const MaxText = 2048

type key struct{}

// With returns a context in which Root begins spans of tracer. With nil it returns ctx.
func With(ctx context.Context, tracer trace.Tracer) context.Context {
	if tracer == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, tracer)
}

func tracerOf(ctx context.Context) trace.Tracer {
	tracer, _ := ctx.Value(key{}).(trace.Tracer)
	return tracer
}

// Like returns ctx with the tracer of another context, if that has one. It serves work whose context is made elsewhere.
func Like(ctx, other context.Context) context.Context { return With(ctx, tracerOf(other)) }

// Enabled reports whether ctx has a tracer.
func Enabled(ctx context.Context) bool { return tracerOf(ctx) != nil }

// Active reports whether a span is under way, so that Start records one.
func Active(ctx context.Context) bool {
	return Enabled(ctx) && trace.SpanContextFromContext(ctx).IsValid()
}

// Root begins a span for work that nobody waits for, such as a batch, at a time that may be in the past.
func Root(ctx context.Context, name string, kind trace.SpanKind, began time.Time) (context.Context, trace.Span) {
	tracer := tracerOf(ctx)
	if tracer == nil {
		return ctx, trace.SpanFromContext(ctx)
	}
	return tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(began))
}

// Start begins a span below the one that is under way. It records nothing if there is none: what a program does in the
// background is not traced unless it begins with Root.
func Start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	if !Active(ctx) {
		return ctx, trace.SpanFromContext(ctx)
	}
	return Root(ctx, name, kind, time.Now())
}

// StartAt is Start for a span that has begun at a time in the past.
func StartAt(ctx context.Context, name string, kind trace.SpanKind, began time.Time) (context.Context, trace.Span) {
	if !Active(ctx) {
		return ctx, trace.SpanFromContext(ctx)
	}
	return Root(ctx, name, kind, began)
}

// Fail marks a span as failed. It does nothing if err is nil.
func Fail(s trace.Span, err error) {
	if err != nil {
		text := err.Error()
		s.SetStatus(codes.Error, text[:min(len(text), MaxText)])
	}
}

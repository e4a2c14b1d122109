// Package span lets the parts of a program say what they do for a request or a batch, and how long it takes, without knowing who records it.
//
// A context carries the recorder, a Tracer, and the span that is under way. Without a Tracer in the context all functions return at
// once and allocate nothing. Package schema/tracing has the Tracer of the programs. The edge has none, so redirects are not traced.
package span

import (
	"context"
	"time"
)

// Kind says which side of a call a span is.
type Kind int

// The kinds of OpenTelemetry.
const (
	Internal Kind = iota
	Server
	Client
	Producer
	Consumer
)

// Tracer records spans. Its methods may be called concurrently.
type Tracer interface {
	// Begin begins a span below that in ctx, or a new trace if ctx has none. began may be in the past. The context that it returns
	// has the new span.
	Begin(ctx context.Context, name string, kind Kind, began time.Time) (context.Context, Span)
}

// Span is a piece of work. It belongs to one goroutine at a time. A span that is not ended is not recorded.
type Span interface {
	// SetName replaces the name.
	SetName(name string)
	SetString(key, value string)
	SetInt(key string, value int64)
	// Fail marks the span as failed. It does nothing if err is nil.
	Fail(err error)
	// End ends the span. No method may be called afterwards.
	End()
}

// carried is what a context carries.
type carried struct {
	tracer Tracer
	below  bool // a span is under way
}

type key struct{}

// With returns a context in which Root begins spans of tracer. With nil it returns ctx.
func With(ctx context.Context, tracer Tracer) context.Context {
	if tracer == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, carried{tracer: tracer})
}

// Like returns ctx with the Tracer of another context, if that has one. It serves work whose context is made elsewhere.
func Like(ctx, other context.Context) context.Context {
	c, ok := other.Value(key{}).(carried)
	if !ok {
		return ctx
	}
	return With(ctx, c.tracer)
}

// Enabled reports whether ctx has a Tracer.
func Enabled(ctx context.Context) bool {
	_, ok := ctx.Value(key{}).(carried)
	return ok
}

// Root begins a span for work that nobody waits for, such as a batch, at a time that may be in the past.
func Root(ctx context.Context, name string, kind Kind, began time.Time) (context.Context, Span) {
	c, ok := ctx.Value(key{}).(carried)
	if !ok {
		return ctx, none{}
	}
	return begin(ctx, c, name, kind, began)
}

// Start begins a span below the one that is under way. It records nothing if there is none: what a program does in the background
// is not traced unless it begins with Root.
func Start(ctx context.Context, name string, kind Kind) (context.Context, Span) {
	if !Active(ctx) {
		return ctx, none{}
	}
	return StartAt(ctx, name, kind, time.Now())
}

// StartAt is Start for a span that has begun at a time in the past.
func StartAt(ctx context.Context, name string, kind Kind, began time.Time) (context.Context, Span) {
	c, ok := ctx.Value(key{}).(carried)
	if !ok || !c.below {
		return ctx, none{}
	}
	return begin(ctx, c, name, kind, began)
}

// Active reports whether a span is under way, so that Start records one.
func Active(ctx context.Context) bool {
	c, ok := ctx.Value(key{}).(carried)
	return ok && c.below
}

func begin(ctx context.Context, c carried, name string, kind Kind, began time.Time) (context.Context, Span) {
	ctx, s := c.tracer.Begin(ctx, name, kind, began)
	if !c.below {
		c.below = true
		ctx = context.WithValue(ctx, key{}, c)
	}
	return ctx, s
}

// none is a span that is not recorded.
type none struct{}

func (none) SetName(string)           {}
func (none) SetString(string, string) {}
func (none) SetInt(string, int64)     {}
func (none) Fail(error)               {}
func (none) End()                     {}

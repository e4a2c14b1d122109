// Package tracingtest keeps the spans of a program for tests.
package tracingtest

import (
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"linkstream/schema/testkit"
	"linkstream/schema/tracing"
)

// Recorder keeps the spans that a program has ended.
type Recorder struct {
	*tracing.Tracer
	spans *tracetest.InMemoryExporter
}

// New returns a Recorder for a program.
func New(t testing.TB) Recorder {
	spans := tracetest.NewInMemoryExporter()
	return Recorder{tracing.New(trace.NewTracerProvider(trace.WithSyncer(spans))), spans}
}

// Spans returns the spans so far, in the order in which they began.
func (r Recorder) Spans() tracetest.SpanStubs {
	spans := r.spans.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	return spans
}

// Await waits for a span that matches, and returns it.
func (r Recorder) Await(t testing.TB, what string, matches func(tracetest.SpanStub) bool) (found tracetest.SpanStub) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		spans := r.Spans()
		i := slices.IndexFunc(spans, matches)
		if i < 0 {
			return fmt.Errorf("no %s among %+v", what, spans)
		}
		found = spans[i]
		return nil
	})
	return found
}

// Below returns the names of the spans below another one, in the order in which they began.
func (r Recorder) Below(parent tracetest.SpanStub) (names []string) {
	for _, s := range r.Spans() {
		if s.Parent.SpanID() == parent.SpanContext.SpanID() {
			names = append(names, s.Name)
		}
	}
	return names
}

// Attribute returns the text of an attribute of a span, "" if it has none.
func Attribute(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

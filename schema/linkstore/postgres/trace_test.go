//go:build engines

package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/span"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing/tracingtest"
)

func TestTraces(t *testing.T) {
	t.Parallel()
	recorder := tracingtest.New(t)
	ctx := recorder.Context(t.Context())
	store, err := postgres.Open(ctx, postgres.Config{DSN: engines.Postgres(t)})
	testkit.Must(t, err)
	defer store.Close()

	_, _ = schema.FindLink(ctx, store, 0, "in-the-background")
	ctx, root := span.Root(ctx, "request", trace.SpanKindServer, time.Now())
	_, _ = schema.FindLink(ctx, store, 0, "secret")
	root.End()

	request := recorder.Await(t, "request", func(s tracetest.SpanStub) bool { return s.Name == "request" })
	below := recorder.Below(request)
	if !slices.Contains(below, "postgres SELECT") || !slices.Contains(below, "postgres connection") {
		t.Errorf("below the request are %q", below)
	}
	testkit.Equal(t, "spans", len(recorder.Spans()), 1+len(below))
	for _, s := range recorder.Spans() {
		if s.Name == "postgres SELECT" && !strings.Contains(tracingtest.Attribute(s, "db.query.text"), "links") ||
			strings.Contains(tracingtest.Attribute(s, "db.query.text"), "secret") {
			t.Errorf("the statement is %q", tracingtest.Attribute(s, "db.query.text"))
		}
	}
}

//go:build engines

package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/postgres"
	"linkstream/schema/span"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing/tracingtest"
)

func TestTraces(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t)
	tracer := collector.Tracer(t, "test")
	ctx := tracer.Context(t.Context())
	store, err := postgres.Open(ctx, postgres.Config{DSN: engines.Postgres(t)})
	testkit.Must(t, err)
	defer store.Close()

	_, _ = schema.FindLink(ctx, store, 0, "in-the-background")
	ctx, root := span.Root(ctx, "request", span.Server, time.Now())
	_, _ = schema.FindLink(ctx, store, 0, "secret")
	root.End()
	tracer.Close()

	request := collector.Await(t, "request", func(s tracingtest.Span) bool { return s.Name == "request" })
	below := collector.Below(request)
	if !slices.Contains(below, "postgres SELECT") || !slices.Contains(below, "postgres connection") {
		t.Errorf("below the request are %q", below)
	}
	testkit.Equal(t, "spans", len(collector.Spans()), 1+len(below))
	for _, s := range collector.Spans() {
		if s.Name == "postgres SELECT" && !strings.Contains(s.Attributes["db.query.text"], "links") || strings.Contains(s.Attributes["db.query.text"], "secret") {
			t.Errorf("the statement is %q", s.Attributes["db.query.text"])
		}
	}
}

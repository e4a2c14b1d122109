package span_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"linkstream/schema/span"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing/tracingtest"
)

func TestSpans(t *testing.T) {
	t.Run("are recorded below a root", func(t *testing.T) {
		recorder := tracingtest.New(t)
		ctx := recorder.Context(t.Context())
		testkit.Equal(t, "enabled", span.Enabled(ctx), true)
		ctx, root := span.Root(ctx, "batch", trace.SpanKindConsumer, time.Now())
		testkit.Equal(t, "active", span.Active(ctx), true)
		_, child := span.Start(ctx, "insert", trace.SpanKindClient)
		span.Fail(child, errors.New("away"))
		child.End()
		span.Fail(root, nil)
		root.End()
		spans := recorder.Spans()
		testkit.Equal(t, "below the root", recorder.Below(spans[0]), []string{"insert"})
		testkit.Equal(t, "failures", []string{spans[0].Status.Description, spans[1].Status.Description}, []string{"", "away"})
	})
	t.Run("are not recorded without a root", func(t *testing.T) {
		recorder := tracingtest.New(t)
		ctx := recorder.Context(t.Context())
		_, s := span.Start(ctx, "in the background", trace.SpanKindClient)
		s.End()
		testkit.Equal(t, "spans", len(recorder.Spans()), 0)
		testkit.Equal(t, "active", span.Active(ctx), false)
	})
	t.Run("are recorded in another context like it", func(t *testing.T) {
		recorder := tracingtest.New(t)
		like := span.Like(context.Background(), recorder.Context(t.Context()))
		_, root := span.Root(like, "batch", trace.SpanKindConsumer, time.Now())
		root.End()
		testkit.Equal(t, "spans", len(recorder.Spans()), 1)
		testkit.Equal(t, "enabled", span.Enabled(span.Like(context.Background(), t.Context())), false)
	})
	t.Run("cost no allocation without a tracer", func(t *testing.T) {
		ctx := span.With(t.Context(), nil)
		testkit.Equal(t, "enabled", span.Enabled(ctx), false)
		err := errors.New("away")
		if n := testing.AllocsPerRun(1000, func() {
			ctx, root := span.Root(ctx, "batch", trace.SpanKindConsumer, time.Time{})
			_, child := span.Start(ctx, "insert", trace.SpanKindClient)
			span.Fail(child, err)
			child.End()
			root.End()
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

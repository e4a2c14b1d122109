package span_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"linkstream/schema/span"
	"linkstream/schema/testkit"
)

// tracer notes what is recorded.
type tracer struct{ notes []string }

type noted struct {
	tracer *tracer
	name   string
}

func (t *tracer) Begin(ctx context.Context, name string, _ span.Kind, _ time.Time) (context.Context, span.Span) {
	t.notes = append(t.notes, "begin "+name)
	return ctx, &noted{t, name}
}

func (n *noted) SetName(name string)         { n.name = name }
func (n *noted) SetString(key, value string) { n.tracer.notes = append(n.tracer.notes, key+"="+value) }
func (n *noted) SetInt(key string, value int64) {
	n.tracer.notes = append(n.tracer.notes, fmt.Sprint(key, "=", value))
}
func (n *noted) Fail(err error) {
	if err != nil {
		n.tracer.notes = append(n.tracer.notes, err.Error())
	}
}
func (n *noted) End() { n.tracer.notes = append(n.tracer.notes, "end "+n.name) }

func TestSpans(t *testing.T) {
	t.Run("are recorded below a root", func(t *testing.T) {
		var recorder tracer
		ctx := span.With(t.Context(), &recorder)
		testkit.Equal(t, "enabled", span.Enabled(ctx), true)
		ctx, root := span.Root(ctx, "batch", span.Consumer, time.Now())
		testkit.Equal(t, "active", span.Active(ctx), true)
		_, child := span.Start(ctx, "insert", span.Client)
		child.SetInt("rows", 3)
		child.Fail(errors.New("away"))
		child.End()
		root.SetName("another")
		root.End()
		testkit.Equal(t, "notes", recorder.notes, []string{"begin batch", "begin insert", "rows=3", "away", "end insert", "end another"})
	})
	t.Run("are not recorded without a root", func(t *testing.T) {
		var recorder tracer
		ctx := span.With(t.Context(), &recorder)
		_, s := span.Start(ctx, "in the background", span.Client)
		s.End()
		testkit.Equal(t, "notes", len(recorder.notes), 0)
		testkit.Equal(t, "active", span.Active(ctx), false)
	})
	t.Run("are recorded in another context like it", func(t *testing.T) {
		var recorder tracer
		_, root := span.Root(span.Like(context.Background(), span.With(t.Context(), &recorder)), "batch", span.Consumer, time.Now())
		root.End()
		testkit.Equal(t, "notes", recorder.notes, []string{"begin batch", "end batch"})
		testkit.Equal(t, "enabled", span.Enabled(span.Like(context.Background(), t.Context())), false)
	})
	t.Run("cost no allocation without a tracer", func(t *testing.T) {
		ctx := span.With(t.Context(), nil)
		testkit.Equal(t, "enabled", span.Enabled(ctx), false)
		err := errors.New("away")
		if n := testing.AllocsPerRun(1000, func() {
			ctx, root := span.Root(ctx, "batch", span.Consumer, time.Time{})
			_, child := span.Start(ctx, "insert", span.Client)
			child.SetString("key", "value")
			child.SetInt("key", 1<<40)
			child.Fail(err)
			child.End()
			root.End()
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

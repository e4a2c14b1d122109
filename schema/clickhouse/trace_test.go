//go:build engines

package clickhouse_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/clickhouse/clickhousetest"
	"linkstream/schema/span"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing/tracingtest"
)

func TestTraces(t *testing.T) {
	t.Parallel()
	recorder := tracingtest.New(t)
	background := recorder.Context(t.Context())
	dsn := engines.ClickHouse(t)
	testkit.Must(t, clickhousetest.Migrate(t.Context(), dsn))
	store, err := clickhouse.OpenClickStore(background, clickhouse.Config{DSN: dsn})
	testkit.Must(t, err)
	defer store.Close()

	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	source.Fill(batch, 0, 10)
	ctx, inserting := span.Root(background, "insert", trace.SpanKindConsumer, time.Now())
	testkit.Must(t, store.InsertClicks(ctx, batch))
	inserting.End()
	ctx, reading := span.Root(background, "read", trace.SpanKindServer, time.Now())
	_, err = store.LinkStats(ctx, storetest.HotLink)
	testkit.Must(t, err)
	_, err = store.ClickCounts(ctx, 1, []int64{storetest.HotLink})
	testkit.Must(t, err)
	reading.End()
	_, err = store.Position(background, 0)
	testkit.Must(t, err)

	below := func(name string) []string {
		return recorder.Below(recorder.Await(t, name, func(s tracetest.SpanStub) bool { return s.Name == name }))
	}
	testkit.Equal(t, "statements of reads", below("read"), []string{"clickhouse SELECT", "clickhouse SELECT"})
	if found := below("insert"); !slices.Contains(found, "clickhouse INSERT") ||
		!slices.Contains(found, "clickhouse SELECT") {
		t.Errorf("statements of an insert: %q", found)
	}
	for _, s := range recorder.Spans() {
		if s.Name == "clickhouse INSERT" {
			testkit.Equal(t, "rows", tracingtest.Attribute(s, "db.operation.batch.size"), "10")
		}
		if s.Status.Code == codes.Error || !s.Parent.IsValid() && s.Name != "insert" && s.Name != "read" {
			t.Errorf("%+v", s)
		}
	}
}

package worker_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"linkstream/ingest/worker"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing/tracingtest"
)

func TestWorkerTracesBatches(t *testing.T) {
	t.Parallel()
	recorder := tracingtest.New(t)

	client, store := streamtest.StartBroker(t).CreateTopics(1), &faultyStore{PositionStore: openStore(t)}
	produce(t, client, 0, append(encoded(lane(1), 1, 10), []byte("no click"))...)
	store.set(faults{insert: errDown})
	failed := func(s tracetest.SpanStub) bool { return s.Name == "count clicks" && s.Status.Code == codes.Error }
	ctx, cancel := context.WithCancel(recorder.Context(t.Context()))
	done := make(chan error, 1)
	w := worker.New(quick(), client, store, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
	go func() { done <- w.Run(ctx) }()
	recorder.Await(t, "failed batch", failed)
	store.set(faults{})
	awaitTotal(t, store, 10)
	succeeded := func(s tracetest.SpanStub) bool { return s.Name == "count clicks" && s.Status.Code != codes.Error }
	batch := recorder.Await(t, "batch", succeeded)
	cancel()
	testkit.Must(t, <-done)

	testkit.Equal(t, "below a batch", recorder.Below(batch),
		[]string{"fetch", "publish dead letters", "insert", "commit"})
	for key, want := range map[string]string{"messaging.system": "kafka", "linkstream.partition": "0",
		"linkstream.offset":  "0",
		"linkstream.records": "11", "linkstream.clicks": "10", "linkstream.repeated": "0", "linkstream.lag_records": "0"} {
		testkit.Equal(t, key, tracingtest.Attribute(batch, key), want)
	}
	if tracingtest.Attribute(batch, "linkstream.lag_ms") == "" {
		t.Error("there is no lag")
	}
	fetch := recorder.Await(t, "fetch", func(s tracetest.SpanStub) bool {
		return s.Name == "fetch" && s.Parent.SpanID() == batch.SpanContext.SpanID()
	})
	if below := recorder.Below(fetch); !slices.Contains(below, "decode") {
		t.Errorf("below a fetch are %q", below)
	}
	testkit.Equal(t, "below a failed batch", recorder.Below(recorder.Await(t, "failed batch", failed)),
		[]string{"fetch", "publish dead letters", "insert"})
	for _, s := range recorder.Spans() { // none of fetches that brought nothing
		if !s.Parent.IsValid() && tracingtest.Attribute(s, "linkstream.records") != "11" {
			t.Errorf("%+v", s)
		}
	}
}

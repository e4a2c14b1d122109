package worker_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/worker"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing/tracingtest"
)

func TestWorkerTracesBatches(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t)
	tracer := collector.Tracer(t, "ingest")

	client, store := streamtest.StartBroker(t).CreateTopics(1), &faultyStore{ClickStore: openStore(t)}
	produce(t, client, 0, append(encoded(lane(1), 1, 10), []byte("no click"))...)
	store.set(faults{insert: errDown})
	failed := func(s tracingtest.Span) bool { return s.Name == "count clicks" && s.Failure != "" }
	ctx, cancel := context.WithCancel(tracer.Context(t.Context()))
	done := make(chan error, 1)
	w := worker.New(quick(), client, store, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
	go func() { done <- w.Run(ctx) }()
	collector.Await(t, "failed batch", failed)
	store.set(faults{})
	awaitTotal(t, store, 10)
	succeeded := func(s tracingtest.Span) bool { return s.Name == "count clicks" && s.Failure == "" }
	batch := collector.Await(t, "batch", succeeded)
	cancel()
	testkit.Must(t, <-done)
	tracer.Close()

	testkit.Equal(t, "below a batch", collector.Below(batch),
		[]string{"fetch", "publish dead letters", "insert", "commit"})
	for key, want := range map[string]string{"messaging.system": "kafka", "linkstream.partition": "0",
		"linkstream.offset":  "0",
		"linkstream.records": "11", "linkstream.clicks": "10", "linkstream.repeated": "0", "linkstream.lag_records": "0"} {
		testkit.Equal(t, key, batch.Attributes[key], want)
	}
	if batch.Attributes["linkstream.lag_ms"] == "" {
		t.Error("there is no lag")
	}
	fetch := collector.Await(t, "fetch", func(s tracingtest.Span) bool {
		return s.Name == "fetch" &&
			s.Parent == batch.ID
	})
	if below := collector.Below(fetch); !slices.Contains(below, "decode") {
		t.Errorf("below a fetch are %q", below)
	}
	testkit.Equal(t, "below a failed batch", collector.Below(collector.Await(t, "failed batch", failed)),
		[]string{"fetch", "publish dead letters", "insert"})
	for _, s := range collector.Spans() { // none of fetches that brought nothing
		if s.Parent == "" && s.Attributes["linkstream.records"] != "11" {
			t.Errorf("%+v", s)
		}
	}
}

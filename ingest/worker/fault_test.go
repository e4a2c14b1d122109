package worker_test

import (
	"log/slog"
	"testing"

	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
)

func TestWorkerOutlivesFaultsOfTheStore(t *testing.T) {
	t.Parallel()
	client, store := streamtest.StartBroker(t).Topics(1), &faultyStore{ClickStore: openStore(t)}
	clicks := encoded(lane(1), 1, 300)
	produce(t, client, 0, clicks[:100]...)

	// The store is down when the worker starts.
	store.set(faults{position: errDown, insert: errDown})
	w := start(t, quick(), client, store)
	w.awaitFailing(errDown.Error())
	store.set(faults{})
	w.awaitReady()
	awaitTotal(t, store, 100)

	// It goes down while the worker counts.
	store.set(faults{position: errDown, insert: errDown})
	produce(t, client, 0, clicks[100:200]...)
	w.awaitFailing(errDown.Error())
	if got := total(t, store); got != 100 {
		t.Fatalf("%d clicks are counted by a store that is down", got)
	}
	store.set(faults{})
	w.awaitReady()
	awaitTotal(t, store, 200)

	// Its answer is lost after it counted.
	store.set(faults{answer: errDown})
	produce(t, client, 0, clicks[200:]...)
	w.awaitFailing(errDown.Error())
	store.set(faults{})
	w.awaitReady()
	awaitTotal(t, store, 300)
	awaitPosition(t, store, 0, 300)

	w.stop()
	if got := w.metric("failures_total"); got < 3 {
		t.Errorf("metric failures_total is %d, want at least 3", got)
	}
	if !w.log.contains(errDown.Error()) {
		t.Error("nothing is logged")
	}
}

// TestWorkerTalliesABatchOnce: a batch that has to be built again must not count its dropped records twice.
func TestWorkerTalliesABatchOnce(t *testing.T) {
	t.Parallel()
	client, store := streamtest.StartBroker(t).Topics(1), &faultyStore{ClickStore: openStore(t)}
	values := append(encoded(lane(1), 1, 5), encoded(lane(1), 4, 6)...)
	values = append(append(values, []byte("not a click")), encoded(lane(1), 9, 9)...)
	produce(t, client, 0, values...)
	store.set(faults{insert: errDown})
	w := start(t, quick(), client, store)
	w.awaitFailing(errDown.Error())
	store.set(faults{})
	awaitTotal(t, store, 7)
	w.stop()
	w.wantMetrics(map[string]int{"clicks_counted_total": 7, "clicks_repeated_total": 2, "clicks_missing_total": 2,
		"records_dead_total": 1})
}

func TestWorkerOutlivesTheBroker(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.Topics(2), openStore(t)
	produce(t, client, 0, encoded(lane(1), 1, 50)...)
	w := start(t, quick(), client, store)
	awaitTotal(t, store, 50)
	broker.Stop()
	streamtest.Eventually(t, func() string {
		if w.Ready() == nil {
			return "the worker is ready without a broker"
		}
		return ""
	})
	broker.Start()
	streamtest.Succeeds(t, func() error {
		var batch stream.Batch
		for _, v := range encoded(lane(1), 51, 80) {
			batch.Append(nil, v)
		}
		return client.Produce(t.Context(), 0, &batch)
	})
	awaitTotal(t, store, 80)
	w.awaitReady()
}

// TestWorkersThatOverlap lets two of them count one partition, as a worker and its successor may for a moment.
func TestWorkersThatOverlap(t *testing.T) {
	t.Parallel()
	client, store := streamtest.StartBroker(t).Topics(1), openStore(t)
	clicks := encoded(lane(1), 1, 60)
	newPartition := func() *worker.Partition {
		return worker.NewPartition(0, quick(), client, store, nil, slog.New(slog.DiscardHandler))
	}
	step := func(p *worker.Partition, want int64) {
		t.Helper()
		if next, err := p.Step(t.Context()); err != nil || next != want {
			t.Fatalf("counted up to %d, error %v; want %d", next, err, want)
		}
	}
	stale := func(p *worker.Partition) {
		t.Helper()
		if _, err := p.Step(t.Context()); schema.ErrorCode(err) != schema.CodeConflict {
			t.Fatalf("got %v, want a conflict", err)
		}
	}
	zombie, successor := newPartition(), newPartition()
	produce(t, client, 0, clicks[:20]...)
	step(zombie, 20)
	step(successor, 20)
	produce(t, client, 0, clicks[20:40]...)
	step(successor, 40)
	stale(zombie) // it read the same clicks
	step(zombie, 40)
	produce(t, client, 0, clicks[40:]...)
	step(zombie, 60)
	stale(successor)
	step(successor, 60)
	awaitTotal(t, store, 60)
}

func TestWorkerSkipsWhatRetentionDeleted(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.Topics(1), openStore(t)
	clicks := encoded(lane(1), 1, 60)
	produce(t, client, 0, clicks[:20]...)
	first := start(t, quick(), client, store)
	awaitTotal(t, store, 20)
	first.stop()

	produce(t, client, 0, clicks[20:50]...)
	if err := broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, 35); err != nil {
		t.Fatal(err)
	}
	second := start(t, quick(), client, store)
	awaitTotal(t, store, 20+15)
	second.wantMetrics(map[string]int{"records_deleted_total": 15, "clicks_missing_total": 15, "clicks_counted_total": 15})
	for _, line := range []string{"level=ERROR", "records were deleted before they were counted", "from=20 to=35"} {
		if !second.log.contains(line) {
			t.Errorf("the log does not say %q", line)
		}
	}
	produce(t, client, 0, clicks[50:]...)
	awaitTotal(t, store, 45)
	second.awaitReady()
}

// TestWorkerSkipsToTheEnd: all was deleted, and the store has to learn of clicks that come afterwards.
func TestWorkerSkipsToTheEnd(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.Topics(1), openStore(t)
	clicks := encoded(lane(1), 1, 60)
	produce(t, client, 0, clicks[:50]...)
	if err := broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, -1); err != nil {
		t.Fatal(err)
	}
	w := start(t, quick(), client, store)
	streamtest.Eventually(t, func() string {
		if w.metric("records_deleted_total") == 0 {
			return "nothing is skipped"
		}
		return ""
	})
	produce(t, client, 0, clicks[50:]...)
	awaitTotal(t, store, 10)
	awaitPosition(t, store, 0, 60)
	w.wantMetrics(map[string]int{"records_deleted_total": 50, "failures_total": 0})
}

func TestWorkerRefusesAnotherTopic(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.Topics(1), openStore(t)
	produce(t, client, 0, encoded(lane(1), 1, 20)...)
	first := start(t, quick(), client, store)
	awaitTotal(t, store, 20)
	first.stop()

	if err := broker.DeleteTopic(stream.DefaultConfig().Clicks); err != nil {
		t.Fatal(err)
	}
	again := broker.Topics(1)
	produce(t, again, 0, encoded(lane(2), 1, 5)...)
	second := start(t, quick(), again, store)
	second.awaitFailing("the topic ends at 5, but has been counted to 20")
	if got := total(t, store); got != 20 {
		t.Errorf("%d clicks are counted", got)
	}
	if !second.log.contains("the topic ends at 5") {
		t.Error("the log does not say why")
	}
}

package worker_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

func TestWorkerCountsEachClickOnce(t *testing.T) {
	t.Parallel()
	client, store := streamtest.StartBroker(t).CreateTopics(2), openStore(t)
	a, b := encoded(lane(1), 1, 100), encoded(lane(2), 1, 50)
	produce(t, client, 0, a[:60]...)
	produce(t, client, 0, a[:60]...) // repeated after a lost acknowledgement
	produce(t, client, 0, append(a[40:], a[99])...)
	produce(t, client, 1, b...)

	w := start(t, quick(), client, store)
	awaitTotal(t, store, 150)
	produce(t, client, 1, b[:10]...)
	produce(t, client, 1, encoded(lane(2), 51, 60)...)
	awaitTotal(t, store, 160)
	awaitPosition(t, store, 1, 70)

	stats, err := store.LinkStats(t.Context(), link)
	testkit.Must(t, err)
	want := schema.Stats{TotalClicks: 160, ClicksByDay: []schema.DayCount{{Date: "2026-11-21", Total: 160}},
		Devices: map[schema.Device]int64{schema.Bot: 160}, Browsers: map[string]int64{"curl": 160}}
	testkit.Equal(t, "stats", stats, want)
	w.awaitReady()
	w.wantMetrics(map[string]int{"clicks_counted_total": 160, "clicks_repeated_total": 91, "clicks_missing_total": 0,
		"records_dead_total": 0, "records_deleted_total": 0, "log_epochs_total": 0, "failures_total": 0, "partitions": 2,
		"lag_records": 0})
	w.stop()
	w.wantMetrics(map[string]int{"partitions": 0})
	if err := w.Ready(); err == nil {
		t.Error("a stopped worker is ready")
	}
}

func TestWorkerMovesRecordsThatAreNotClicksToTheDeadLetterTopic(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(1), openStore(t)
	clicks := encoded(lane(1), 1, 3)
	at := func(year int) []byte {
		return schema.AppendClick(nil, &schema.Click{Lane: lane(9), Seq: 1, LinkID: link,
			ClickedAt: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)})
	}
	noise := make([]byte, 300)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	dead := [][]byte{
		{}, {0}, []byte("not a click"), noise, clicks[0][:20],
		schema.AppendClickBody(nil, &schema.Click{LinkID: link, ClickedAt: noon}), // without lane and seq
		at(1), at(1969), at(2149), at(9_999_999),
		schema.AppendClick(nil, &schema.Click{Lane: lane(9), Seq: 1 << 63, LinkID: link, ClickedAt: noon}),
	}
	produce(t, client, 0, clicks[0])
	produce(t, client, 0, append(slices.Clone(dead), clicks[1])...)
	produce(t, client, 0, clicks[2])

	w := start(t, quick(), client, store)
	awaitTotal(t, store, 3)
	awaitPosition(t, store, 0, int64(3+len(dead)))
	w.stop()
	w.wantMetrics(map[string]int{"clicks_counted_total": 3, "records_dead_total": len(dead)})

	got := readDead(t, broker, len(dead))
	for i := range dead {
		if !bytes.Equal(got[i], dead[i]) {
			t.Errorf("dead record %d: got %x, want %x", i, got[i], dead[i])
		}
	}
}

// readDead returns the first n records of the dead letter topic.
func readDead(t testing.TB, broker *streamtest.Broker, n int) [][]byte {
	t.Helper()
	cfg := broker.Config(1)
	cfg.Clicks, cfg.Dead = cfg.Dead, cfg.Clicks
	client := streamtest.NewClient(t, cfg)
	var values [][]byte
	for len(values) < n {
		before := len(values)
		if _, err := client.Fetch(t.Context(), 0, int64(before), time.Second, func(r stream.Record) error {
			values = append(values, bytes.Clone(r.Value))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(values) == before {
			t.Fatalf("the dead letter topic has %d of %d records", before, n)
		}
	}
	return values
}

func TestDeadLettersFitIntoTheBrokersMessageLimit(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(1), openStore(t)
	noise := make([]byte, 100<<10) // random bytes do not compress: the broker refuses a batch with all of them
	var dead [][]byte
	for i := range uint8(30) {
		rand.NewChaCha8([32]byte{i}).Read(noise)
		dead = append(dead, bytes.Clone(noise))
	}
	for chunk := range slices.Chunk(dead, 8) {
		produce(t, client, 0, chunk...)
	}
	produce(t, client, 0, encoded(lane(1), 1, 5)...)

	w := start(t, quick(), client, store)
	awaitTotal(t, store, 5)
	w.wantMetrics(map[string]int{"records_dead_total": len(dead), "failures_total": 0})
	if got := readDead(t, broker, len(dead)); !slices.EqualFunc(got, dead, bytes.Equal) {
		t.Error("the dead records differ")
	}
}

func TestWorkerCommitsToTheGroup(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(1), openStore(t)
	produce(t, client, 0, encoded(lane(1), 1, 30)...)
	start(t, quick(), client, store)
	awaitTotal(t, store, 30)
	testkit.Succeeds(t, func() error {
		if got := streamtest.CommittedOffsets(t, broker.Config(1), 1)[0]; got != 30 {
			return fmt.Errorf("offset %d is committed, want 30", got)
		}
		return nil
	})
}

func TestBatchLimits(t *testing.T) {
	t.Parallel()
	t.Run("no batch has more clicks than MaxBatch", func(t *testing.T) {
		t.Parallel()
		client, store := streamtest.StartBroker(t).CreateTopics(1), &faultyStore{PositionStore: openStore(t)}
		produce(t, client, 0, encoded(lane(1), 1, 47)...)
		cfg := quick()
		cfg.MaxBatch = 10
		start(t, cfg, client, store)
		awaitTotal(t, store, 47)
		if got, want := store.batchSizes(), []int{10, 10, 10, 10, 7}; !slices.Equal(got, want) {
			t.Errorf("got batches of %v, want %v", got, want)
		}
	})
	t.Run("the lag is right while the store is down", func(t *testing.T) {
		t.Parallel()
		client, store := streamtest.StartBroker(t).CreateTopics(1), &faultyStore{PositionStore: openStore(t)}
		produce(t, client, 0, encoded(lane(1), 1, 40)...)
		cfg := quick()
		cfg.MaxBatch = 10
		w := start(t, cfg, client, store)
		awaitTotal(t, store, 40)
		lag := func(w *running, want int) {
			t.Helper()
			testkit.Succeeds(t, func() error { return testkit.Mismatch("lag", w.metric("lag_records"), want) })
		}
		lag(w, 0)
		store.set(faults{insert: errDown})
		produce(t, client, 0, encoded(lane(1), 41, 70)...)
		lag(w, 30)
		store.set(faults{insert: errDown, position: errDown}) // an insert may be under way, with a position
		produce(t, client, 0, encoded(lane(1), 71, 75)...)
		lag(w, 35)
		w.stop()
		w = start(t, cfg, client, store) // has not seen the position
		lag(w, 35)
		store.set(faults{})
		awaitTotal(t, store, 75)
		lag(w, 0)
	})
	t.Run("the lag is right while the store is slow", func(t *testing.T) {
		t.Parallel()
		client, store := streamtest.StartBroker(t).CreateTopics(1), slowStore{openStore(t), make(chan struct{})}
		produce(t, client, 0, encoded(lane(1), 1, 40)...)
		cfg := quick()
		cfg.MaxBatch = 10
		w := start(t, cfg, client, store)
		produced := int64(40)
		for counted := int64(0); counted <= produced; counted += 10 {
			testkit.Succeeds(t, func() error {
				return testkit.Mismatch("lag", int64(w.metric("lag_records")),
					produced-counted)
			})
			if counted == 0 { // while the first insert is under way
				produce(t, client, 0, encoded(lane(1), 41, 60)...)
				produced = 60
			}
			if counted < produced {
				store.insert <- struct{}{}
			}
			awaitTotal(t, store, min(produced, counted+10))
		}
	})
}

func TestConfig(t *testing.T) {
	t.Run("the default is valid", func(t *testing.T) {
		cfg := worker.DefaultConfig()
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("flags set it", func(t *testing.T) {
		cfg := worker.DefaultConfig()
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		err := fs.Parse([]string{"-ingest.max-batch=7", "-ingest.max-wait=3s"})
		if err != nil || cfg.MaxBatch != 7 || cfg.MaxWait != 3*time.Second {
			t.Errorf("got %+v, error %v", cfg, err)
		}
	})
	t.Run("every invalid field is reported by its flag", func(t *testing.T) {
		for _, cfg := range []worker.Config{{MaxBatch: 0, MaxWait: 0}, {MaxBatch: 500_001, MaxWait: time.Hour}} {
			err := cfg.Validate()
			for _, name := range []string{"-ingest.max-batch", "-ingest.max-wait"} {
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%+v: got %v", cfg, err)
				}
			}
		}
	})
}

// slowStore begins an insert when the test lets it.
type slowStore struct {
	schema.PositionStore
	insert chan struct{}
}

func (s slowStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	select {
	case <-s.insert:
		return s.PositionStore.InsertClicks(ctx, batch)
	case <-ctx.Done():
		return ctx.Err()
	}
}

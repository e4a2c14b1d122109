package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// A batch that is built again after an error must not add to the metrics twice.
func TestMetricsCountARetriedBatchOnce(t *testing.T) {
	t.Parallel()
	client, store := streamtest.StartBroker(t).CreateTopics(1), &faultyStore{PositionStore: openStore(t)}
	values := append(encoded(lane(1), 1, 5), encoded(lane(1), 4, 6)...)
	values = append(append(values, []byte("not a click")), encoded(lane(1), 9, 9)...)
	produce(t, client, 0, values...)
	store.set(faults{position: errDown, insert: errDown})
	w := start(t, quick(), client, store)
	w.awaitFailing(errDown.Error())
	store.set(faults{})
	w.awaitReady()
	awaitTotal(t, store, 7)
	w.stop()
	w.wantMetrics(map[string]int{"clicks_counted_total": 7, "clicks_repeated_total": 2, "clicks_missing_total": 2,
		"records_dead_total": 1})
	if got := w.metric("failures_total"); got == 0 || !w.log.Contains(errDown.Error()) {
		t.Errorf("%d failures, and the log: %s", got, w.log)
	}
	gaps, err := store.LaneGaps(t.Context(), lane(1))
	testkit.Must(t, err)
	testkit.Equal(t, "gaps", gaps, []schema.Gap{{Lane: lane(1), SeqRange: schema.SeqRange{First: 7, Last: 8}, Partition: 0,
		Offset: 9}},
		cmpopts.IgnoreFields(schema.Gap{}, "Found"))
	if since := time.Since(gaps[0].Found); since < 0 || since > time.Minute {
		t.Errorf("the gap was found %v ago", since)
	}
}

func TestWorkerSkipsDeletedRecords(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(1), openStore(t)
	clicks := encoded(lane(1), 1, 60)
	produce(t, client, 0, clicks[:20]...)
	first := start(t, quick(), client, store)
	awaitTotal(t, store, 20)
	first.stop()

	produce(t, client, 0, clicks[20:50]...)
	testkit.Must(t, broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, 35))
	second := start(t, quick(), client, store)
	awaitTotal(t, store, 20+15)
	second.wantMetrics(map[string]int{"records_deleted_total": 15, "clicks_missing_total": 15, "clicks_counted_total": 15})
	for _, line := range []string{"level=ERROR", "retention deleted records before they were counted", "from=20 to=35"} {
		if !second.log.Contains(line) {
			t.Errorf("the log does not contain %q", line)
		}
	}
	produce(t, client, 0, clicks[50:]...)
	awaitTotal(t, store, 45)
	second.awaitReady()
}

// TestLateWorker begins in the middle of lanes, behind what retention has deleted.
func TestLateWorker(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(1), openStore(t)
	produce(t, client, 0, encoded(lane(1), 1, 50)...)
	testkit.Must(t, broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, 35))
	cfg := quick()
	cfg.Late = true
	late := start(t, cfg, client, store)
	awaitTotal(t, store, 15)
	late.wantMetrics(map[string]int{"clicks_counted_total": 15, "records_deleted_total": 0, "clicks_missing_total": 0})
}

// countingStore counts clicks, and how often it is asked for marks, and for how many at most.
type countingStore struct {
	discardStore
	clicks, asked, most atomic.Int64
}

func (s *countingStore) LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	s.asked.Add(1)
	s.most.Store(max(s.most.Load(), int64(len(lanes))))
	return s.discardStore.LaneMarks(ctx, lanes)
}

func (s *countingStore) InsertClicks(_ context.Context, batch *schema.ClickBatch) error {
	s.clicks.Add(int64(batch.Len()))
	return nil
}

func TestManyNewLanes(t *testing.T) {
	t.Parallel()
	const lanes, most = 12_000, 10_000
	client, store := streamtest.StartBroker(t).CreateTopics(1), new(countingStore)
	var values [][]byte
	for seq := uint64(1); seq <= 2; seq++ {
		for n := range uint32(lanes) {
			values = append(values, encoded(schema.Lane{Incarnation: schema.Incarnation{1}, Number: n}, seq, seq)...)
		}
	}
	produce(t, client, 0, values...)
	cfg := quick()
	cfg.MaxBatch = 100_000
	w := start(t, cfg, client, store)
	w.wantMetrics(map[string]int{"clicks_counted_total": 2 * lanes, "clicks_repeated_total": 0, "clicks_missing_total": 0})
	testkit.Equal(t, "clicks that the store has", store.clicks.Load(), 2*lanes)
	if n := store.asked.Load(); n > 10 {
		t.Errorf("the store was asked for marks %d times", n)
	}
	if n := store.most.Load(); n > most {
		t.Errorf("the store was asked for %d marks at once", n)
	}
}

// A number that no edge has reached does not move its lane's mark: the clicks behind it are counted.
func TestForgedNumbers(t *testing.T) {
	t.Parallel()
	client, store := streamtest.StartBroker(t).CreateTopics(1), openStore(t)
	forged := func(seq uint64) []byte { return encoded(lane(1), seq, seq)[0] }
	produce(t, client, 0, encoded(lane(1), 1, 10)...)
	produce(t, client, 0, forged(schema.MaxSeq), forged(11+schema.MaxLead))
	produce(t, client, 0, encoded(lane(1), 11, 20)...)
	w := start(t, quick(), client, store)
	awaitTotal(t, store, 20)
	w.wantMetrics(map[string]int{"records_dead_total": 2, "records_forged_total": 2, "clicks_missing_total": 0})
	_, dead, err := client.DeadOffsets(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, "dead letters", dead, 2)
	w.stop()

	// They stand before the position, and are no reason to count the log again.
	produce(t, client, 0, forged(schema.MaxSeq))
	produce(t, client, 0, encoded(lane(2), 1, 1)...)
	produce(t, client, 0, forged(schema.MaxSeq))
	w = start(t, quick(), client, store)
	awaitTotal(t, store, 21)
	w.stop()
	w = start(t, quick(), client, store)
	produce(t, client, 0, forged(21+schema.MaxLead-1)) // as far as a lane can be
	awaitTotal(t, store, 22)
	w.wantMetrics(map[string]int{"log_epochs_total": 0, "clicks_missing_total": schema.MaxLead - 1})
}

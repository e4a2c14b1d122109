package worker_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/ingest/worker"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

func produceAt(t testing.TB, client *stream.Client, at time.Time, values ...[]byte) {
	t.Helper()
	var batch stream.Batch
	batch.Reset(at)
	for _, v := range values {
		batch.Append(nil, v)
	}
	testkit.Succeeds(t, func() error { return client.Produce(t.Context(), 0, &batch) })
}

// The topic's retention deletes the last batch of an idle partition. After a restart this broker's log starts at
// offset 0 again.
func TestClicksAfterAnIdleWeekAreCounted(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(1), openStore(t)
	clicks := encoded(lane(1), 1, 50)
	produceAt(t, client, time.Now().Add(-8*24*time.Hour), clicks[:20]...)
	first := start(t, quick(), client, store)
	awaitTotal(t, store, 20)
	first.stop()
	broker.ApplyRetention() // the broker does so once per hour
	broker.Stop()
	broker.Start()
	produceAt(t, client, time.Now(), clicks[20:]...)
	second := start(t, quick(), client, store)
	awaitTotal(t, store, 50)
	second.wantMetrics(map[string]int{"log_epochs_total": 1, "clicks_missing_total": 0})
}

// A new log may be longer than the position in the old one before a worker sees it.
func TestClicksOfAReplacedTopicAreCounted(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]uint64{"shorter than the position": 5, "as long as the position": 20,
		"longer than the position": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := streamtest.StartBroker(t)
			client, store := broker.CreateTopics(1), openStore(t)
			produce(t, client, 0, encoded(lane(1), 1, 20)...)
			first := start(t, quick(), client, store)
			awaitTotal(t, store, 20)
			first.stop()
			testkit.Must(t, broker.DeleteTopic(stream.DefaultConfig().Clicks))
			again := broker.CreateTopics(1)
			produce(t, again, 0, encoded(lane(2), 1, n)...)
			second := start(t, quick(), again, store)
			awaitTotal(t, store, 20+int64(n))
			second.awaitReady()
			second.wantMetrics(map[string]int{"log_epochs_total": 1, "clicks_missing_total": 0, "failures_total": 0})
			if !second.log.Contains("level=ERROR") || !second.log.Contains("the log may not be the one that was counted") {
				t.Error("the log does not say that the topic was replaced")
			}
			// The new log goes on like any other, also for the worker after.
			produce(t, again, 0, encoded(lane(2), n+1, n+10)...)
			awaitTotal(t, store, 30+int64(n))
			second.wantMetrics(map[string]int{"log_epochs_total": 1, "failures_total": 0})
			second.stop()
			third := start(t, quick(), again, store)
			produce(t, again, 0, encoded(lane(2), n+11, n+20)...)
			awaitTotal(t, store, 40+int64(n))
			third.wantMetrics(map[string]int{"log_epochs_total": 0, "failures_total": 0})
		})
	}
}

// A worker that begins where another one has ended reads on, whatever retention has deleted of what was counted.
func TestTheSameLogIsNotCountedAgain(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]int64{"nothing is deleted": 0, "the last counted click is left": 19,
		"nothing is left": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := streamtest.StartBroker(t)
			client, store, log := broker.CreateTopics(1), openStore(t), new(testkit.Buffer)
			clicks := encoded(lane(1), 1, 50)
			produce(t, client, 0, clicks[:20]...)
			_, err := worker.NewPartition(0, quick(), client, store, nil, log.Logger()).Step(t.Context())
			testkit.Must(t, err)
			testkit.Must(t, broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, deleted))
			again := worker.NewPartition(0, quick(), client, store, nil, log.Logger())
			for _, values := range [][][]byte{nil, clicks[20:]} {
				if len(values) > 0 {
					produce(t, client, 0, values...)
				}
				_, err := again.Step(t.Context())
				testkit.Must(t, err)
			}
			testkit.Equal(t, "counted clicks", total(t, store), 50)
			if log.Contains("level=ERROR") {
				t.Errorf("log:\n%s", log.String())
			}
		})
	}
}

// slowTopic gives one record per fetch, as a broker does whose batches are large.
type slowTopic struct{ *stream.Client }

var errOneRecord = errors.New("one record")

func (s slowTopic) Fetch(ctx context.Context, partition int, offset int64, wait time.Duration,
	each func(stream.Record) error) (int64, error) {
	read := false
	lag, err := s.Client.Fetch(ctx, partition, offset, wait, func(r stream.Record) error {
		if read {
			return errOneRecord
		}
		read = true
		return each(r)
	})
	if errors.Is(err, errOneRecord) {
		err = nil
	}
	return lag, err
}

func TestTheSameLogIsRecognizedRecordByRecord(t *testing.T) {
	t.Parallel()
	client, store, log := streamtest.StartBroker(t).CreateTopics(1), openStore(t), new(testkit.Buffer)
	produce(t, client, 0, encoded(lane(1), 1, 20)...)
	_, err := worker.NewPartition(0, quick(), client, store, nil, log.Logger()).Step(t.Context())
	testkit.Must(t, err)
	produce(t, client, 0, encoded(lane(1), 21, 22)...)
	again := worker.NewPartition(0, quick(), slowTopic{client}, store, nil, log.Logger())
	testkit.Eventually(t, "all clicks are counted", func() bool {
		_, err := again.Step(t.Context())
		testkit.Must(t, err)
		return total(t, store) == 22
	})
	testkit.Equal(t, "log", log.String(), "")
}

// A topic is created again between two batches, and filled beyond the position by new lanes: their first clicks are
// missing there.
func TestClicksOfATopicThatIsReplacedBetweenBatchesAreCounted(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	topic, store := &struct{ *stream.Client }{broker.CreateTopics(1)}, openStore(t)
	p := worker.NewPartition(0, quick(), topic, store, nil, slog.New(slog.DiscardHandler))
	produce(t, topic.Client, 0, encoded(lane(1), 1, 40)...)
	_, err := p.Step(t.Context())
	testkit.Must(t, err)
	testkit.Must(t, broker.DeleteTopic(stream.DefaultConfig().Clicks))
	topic.Client = broker.CreateTopics(1)
	produce(t, topic.Client, 0, encoded(lane(2), 1, 100)...)
	if next, err := p.Step(t.Context()); err == nil {
		t.Errorf("a batch that follows a gap in another log is counted, up to %d", next)
	}
	testkit.Equal(t, "counted clicks", total(t, store), 40)
	_, err = p.Step(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, "counted clicks", total(t, store), 140)
}

// A broker that loses power may lose the end of its log. Other clicks then get the offsets of those lost.
func TestClicksAfterATruncationAreCounted(t *testing.T) {
	t.Parallel()
	clicks, others := encoded(lane(1), 1, 60), encoded(lane(2), 1, 30)
	for name, c := range map[string]struct {
		before, after [][][]byte // batches; the log keeps only the first batch produced before
		counted       int64      // before the truncation
		total         int64
	}{
		"the lane goes on": {before: [][][]byte{clicks[:10], clicks[10:20], clicks[20:30]}, after: [][][]byte{clicks[30:]},
			counted: 30, total: 60},
		// The log then ends between the last counted click and the position.
		"what was lost was a repetition": {before: [][][]byte{clicks[:10], clicks[:10]}, after: [][][]byte{others},
			counted: 10, total: 40},
		"the last counted click comes again at its old offset": {before: [][][]byte{clicks[:3], clicks[3:10]},
			after: [][][]byte{others[:6], {clicks[9]}}, counted: 10, total: 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := streamtest.StartBroker(t)
			client, store := broker.CreateTopics(1), openStore(t)
			for _, batch := range c.before {
				produceAt(t, client, noon, batch...)
			}
			first := start(t, quick(), client, store)
			awaitTotal(t, store, c.counted)
			first.stop()
			broker.Stop()
			testkit.Must(t, truncateAfterFirstBatch(broker.Dir))
			broker.Start()
			for _, batch := range c.after {
				produceAt(t, client, noon, batch...)
			}
			second := start(t, quick(), client, store)
			awaitTotal(t, store, c.total)
			second.wantMetrics(map[string]int{"clicks_missing_total": 0, "log_epochs_total": 1})
		})
	}
}

// The clicks that this worker has counted since it began tell it that the log is another one, not only those before.
func TestClicksAfterATruncationBetweenBatchesAreCounted(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(1), openStore(t)
	clicks := encoded(lane(1), 1, 40)
	produceAt(t, client, noon, clicks[:10]...)
	p := worker.NewPartition(0, quick(), client, store, nil, slog.New(slog.DiscardHandler))
	for _, partition := range []*worker.Partition{worker.NewPartition(0, quick(), client, store, nil,
		slog.New(slog.DiscardHandler)), p} {
		_, err := partition.Step(t.Context())
		testkit.Must(t, err)
	}
	produceAt(t, client, noon, clicks[10:]...)
	_, err := p.Step(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, "counted clicks", total(t, store), 40)
	broker.Stop()
	testkit.Must(t, truncateAfterFirstBatch(broker.Dir))
	broker.Start()
	produceAt(t, client, noon, encoded(lane(2), 1, 60)...)
	testkit.Eventually(t, "all clicks are counted", func() bool {
		_, _ = p.Step(t.Context())
		return total(t, store) == 100
	})
}

// truncateAfterFirstBatch removes what follows the first batch of the clicks topic in a data directory of the broker.
func truncateAfterFirstBatch(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, "clicks-") && !strings.Contains(path, "clicks/") ||
			!strings.HasSuffix(path, ".dat") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || len(data) < 12 {
			return err
		}
		end := 12 + int64(data[8])<<24 + int64(data[9])<<16 + int64(data[10])<<8 + int64(data[11])
		return os.Truncate(path, end)
	})
}

// An edge binds a lane to another partition if the topic has lost the first one. It repeats clicks whose fate it does
// not know: some of them were counted from the old partition.
func TestClicksOfALaneThatMovesAreCountedOnce(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(2), openStore(t)
	produce(t, client, 1, encoded(lane(1), 1, 20)...)
	produce(t, client, 0, encoded(lane(2), 1, 5)...)
	first := start(t, quick(), client, store)
	awaitTotal(t, store, 25)
	first.stop()
	testkit.Must(t, broker.DeleteTopic(stream.DefaultConfig().Clicks))
	smaller := broker.CreateTopics(1)
	produce(t, smaller, 0, encoded(lane(3), 1, 5)...)
	produce(t, smaller, 0, encoded(lane(1), 11, 40)...)
	produce(t, smaller, 0, encoded(lane(1), 11, 60)...)
	second := start(t, quick(), smaller, store)
	awaitTotal(t, store, 25+5+40)
	awaitPosition(t, store, 0, 5+30+50)
	second.wantMetrics(map[string]int{"clicks_missing_total": 0, "clicks_repeated_total": 40})
}

// The store goes back to an earlier day. The log still has what came since: it is counted again.
func TestARestoredStoreCatchesUp(t *testing.T) {
	t.Parallel()
	client, path := streamtest.StartBroker(t).CreateTopics(1), filepath.Join(t.TempDir(), "clicks.db")
	clicks := encoded(lane(1), 1, 60)
	count := func(want int64) { // without a new epoch
		t.Helper()
		store := openStoreAt(t, path)
		defer store.Close()
		w := start(t, quick(), client, store)
		awaitTotal(t, store, want)
		w.stop()
		w.wantMetrics(map[string]int{"log_epochs_total": 0})
	}
	produce(t, client, 0, clicks[:20]...)
	count(20)
	backup, err := os.ReadFile(path)
	testkit.Must(t, err)
	produce(t, client, 0, clicks[20:]...)
	count(60)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		os.Remove(path + suffix)
	}
	testkit.Must(t, os.WriteFile(path, backup, 0o600))
	count(60)
}

func openStoreAt(t testing.TB, path string) *sqlite.ClickStore {
	t.Helper()
	store, err := sqlite.OpenClickStore(t.Context(), path)
	testkit.Must(t, err)
	return store
}

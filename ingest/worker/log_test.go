package worker_test

import (
	"testing"

	"linkstream/ingest/worker"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// deploy/test/simulation proves that clicks of replaced and truncated logs are counted once. These tests are of what it
// does not see: metrics and the log.

func TestAReplacedTopicIsReported(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client, store := broker.CreateTopics(1), openStore(t)
	produce(t, client, 0, encoded(lane(1), 1, 20)...)
	first := start(t, quick(), client, store)
	awaitTotal(t, store, 20)
	first.stop()
	testkit.Must(t, broker.DeleteTopic(stream.DefaultConfig().Clicks))
	again := broker.CreateTopics(1)
	produce(t, again, 0, encoded(lane(2), 1, 50)...)
	second := start(t, quick(), again, store)
	awaitTotal(t, store, 70)
	second.awaitReady()
	second.wantMetrics(map[string]int{"log_epochs_total": 1, "clicks_missing_total": 0, "failures_total": 0})
	if !second.log.Contains("level=ERROR") || !second.log.Contains("the log may not be the one that was counted") {
		t.Error("the log does not say that the topic was replaced")
	}
	second.stop()
	produce(t, again, 0, encoded(lane(2), 51, 60)...)
	third := start(t, quick(), again, store)
	awaitTotal(t, store, 80)
	third.wantMetrics(map[string]int{"log_epochs_total": 0, "failures_total": 0})
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

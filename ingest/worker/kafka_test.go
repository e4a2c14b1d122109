//go:build engines

package worker_test

import (
	"fmt"
	"testing"

	"github.com/segmentio/kafka-go"
	"go.uber.org/goleak"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

var engines enginetest.Engines

func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }

// TestClicksOfAReplacedKafkaTopicAreCounted replaces the topic by another one that is longer than the position.
func TestClicksOfAReplacedKafkaTopicAreCounted(t *testing.T) {
	addr := engines.Kafka(t)
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Partitions = addr, 1
	cfg.Clicks, cfg.Dead, cfg.Changes, cfg.Group = enginetest.Name(), enginetest.Name(), enginetest.Name(),
		enginetest.Name()
	client, store := streamtest.NewClient(t, cfg), openStore(t)
	testkit.Must(t, client.EnsureTopics(t.Context()))
	send := func(n byte, first, last uint64) {
		t.Helper()
		for ; first <= last; first += 100 {
			var batch stream.Batch
			batch.Reset(noon)
			for _, v := range encoded(lane(n), first, min(last, first+99)) {
				batch.Append(nil, v)
			}
			testkit.Succeeds(t, func() error { return client.Produce(t.Context(), 0, &batch) })
		}
	}
	send(1, 1, 3000)
	w := start(t, quick(), client, store)
	awaitTotal(t, store, 3000)
	w.stop()
	transport := new(kafka.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	admin := &kafka.Client{Addr: kafka.TCP(addr), Transport: transport}
	res, err := admin.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{cfg.Clicks}})
	testkit.Must(t, err)
	testkit.Must(t, res.Errors[cfg.Clicks])
	testkit.Succeeds(t, func() error {
		if n, err := client.Partitions(t.Context()); err == nil {
			return fmt.Errorf("%d partitions", n)
		}
		return nil
	})
	testkit.Succeeds(t, func() error { return client.EnsureTopics(t.Context()) })
	send(2, 1, 7000)
	again := start(t, quick(), client, store)
	awaitTotal(t, store, 10_000)
	again.awaitReady()
	again.wantMetrics(map[string]int{"log_epochs_total": 1, "clicks_missing_total": 0})
}

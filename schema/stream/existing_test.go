package stream_test

import (
	"testing"

	"github.com/segmentio/kafka-go"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// TestEnsureTopicsWarnsOfAShortRetention creates the topic before, as an operator or an earlier version does.
func TestEnsureTopicsWarnsOfAShortRetention(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	cfg := broker.Config(1)
	admin := &kafka.Client{Addr: kafka.TCP(broker.Addr), Transport: new(kafka.Transport)}
	defer admin.Transport.(*kafka.Transport).CloseIdleConnections()
	res, err := admin.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: cfg.Clicks,
		NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "3600000"}}}}})
	testkit.Must(t, err)
	testkit.Must(t, res.Errors[cfg.Clicks])
	log := new(testkit.Buffer)
	client, err := stream.New(cfg, log.Logger())
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	testkit.Must(t, client.EnsureTopics(t.Context()))
	if !log.Contains("level=WARN") || !log.Contains("retention.ms=3600000") {
		t.Errorf("the log does not warn: %q", log)
	}
	testkit.Must(t, client.KeepClicks(t.Context()))
	before := log.Count("retention.ms")
	testkit.Must(t, client.EnsureTopics(t.Context()))
	if log.Count("retention.ms") != before {
		t.Errorf("a topic that keeps records for ever is warned of: %q", log)
	}
}

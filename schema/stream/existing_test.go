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
		NumPartitions: 1, ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "3600000"}}}}})
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
	kept, err := admin.IncrementalAlterConfigs(t.Context(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{ResourceType: kafka.ResourceTypeTopic,
			ResourceName: cfg.Clicks,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{
				{Name: "retention.ms", Value: "-1", ConfigOperation: kafka.ConfigOperationSet}}}}})
	testkit.Must(t, err)
	testkit.Must(t, kept.Resources[0].Error)
	before := log.Count("retention.ms")
	testkit.Must(t, client.EnsureTopics(t.Context()))
	if log.Count("retention.ms") != before {
		t.Errorf("a topic that keeps records for ever is warned of: %q", log)
	}
}

// describe returns the replication factor and the min.insync.replicas of a topic.
func describe(t *testing.T, addr, topic string) (replicas int, inSync string) {
	t.Helper()
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	admin := &kafka.Client{Addr: kafka.TCP(addr), Transport: transport}
	res, err := admin.Metadata(t.Context(), &kafka.MetadataRequest{Topics: []string{topic}})
	testkit.Must(t, err)
	configs, err := admin.DescribeConfigs(t.Context(),
		&kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}}})
	testkit.Must(t, err)
	for _, entry := range configs.Resources[0].ConfigEntries {
		if entry.ConfigName == "min.insync.replicas" {
			inSync = entry.ConfigValue
		}
	}
	return len(res.Topics[0].Partitions[0].Replicas), inSync
}

func TestEnsureTopicsReplicates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		brokers, factor, replicas int
		inSync                    string
	}{
		"3 replicas on 4 brokers":             {4, -1, 3, "2"},
		"3 replicas on 3 brokers":             {3, -1, 3, "2"},
		"the brokers' default on 2 brokers":   {2, -1, 2, "1"},
		"the brokers' default on one broker":  {1, -1, 1, "1"},
		"as many as the operator wants, few":  {4, 2, 2, "1"},
		"as many as the operator wants, many": {4, 4, 4, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := streamtest.StartBrokers(t, c.brokers)
			cfg := broker.Config(2)
			cfg.Replicas = c.factor
			log := new(testkit.Buffer)
			client, err := stream.New(cfg, log.Logger())
			testkit.Must(t, err)
			t.Cleanup(client.Close)
			testkit.Must(t, client.EnsureTopics(t.Context()))
			for _, topic := range []string{cfg.Clicks, cfg.Dead, cfg.Changes} {
				replicas, inSync := describe(t, broker.Addr, topic)
				testkit.Equal(t, "replicas of "+topic, replicas, c.replicas)
				testkit.Equal(t, "min.insync.replicas of "+topic, inSync, c.inSync)
			}
			if c.replicas >= min(3, c.brokers) && c.inSync != "1" || c.brokers == 1 {
				testkit.Must(t, client.EnsureTopics(t.Context()))
				testkit.Equal(t, "warnings of a topic that it created", log.Count("level=WARN"), 0)
			}
		})
	}
}

func TestEnsureTopicsWarnsOfFewReplicas(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBrokers(t, 3)
	cfg := broker.Config(1)
	cfg.Replicas = 2
	log := new(testkit.Buffer)
	client, err := stream.New(cfg, log.Logger())
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	testkit.Must(t, client.EnsureTopics(t.Context()))
	testkit.Must(t, client.EnsureTopics(t.Context()))
	for _, want := range []string{"replicas=2 recommended=3", "min.insync.replicas=1"} {
		if !log.Contains(want) {
			t.Errorf("%q is not in the log: %q", want, log)
		}
	}
}

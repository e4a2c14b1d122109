//go:build engines && nightly

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

// TestLostBroker loses one of three brokers with its disk, lets another one with the same number take its place, and
// then loses a broker that had everything from the beginning. Each click is counted once.
func TestLostBroker(t *testing.T) {
	t.Parallel()
	brokers := enginetest.Brokers(t)
	var addrs []string
	for _, node := range brokers.Nodes {
		addrs = append(addrs, node.Addr)
	}
	env := engineSettings(engines.Postgres(t), strings.Join(addrs, ","), engines.ClickHouse(t))
	s := newServices(t, env, segmentSetting)
	s.start(t)
	c := startLoaded(t, &cluster{system: s})
	c.awaitReplicas(t, len(brokers.Nodes))
	first := c.random.IntN(len(brokers.Nodes))
	for _, lost := range []int{first, (first + 1) % len(brokers.Nodes)} {
		testkit.Must(t, brokers.Lose(lost))
		c.awaitReplicas(t, len(brokers.Nodes)-1)
		c.awaitRise(t, "ingest", counterCounted, 300)
		c.createAndFollow(t)
		testkit.Must(t, brokers.Nodes[lost].Start(t.Context()))
		c.awaitReplicas(t, len(brokers.Nodes))
		c.awaitRise(t, "ingest", counterCounted, 300)
	}
	c.stopAndVerify(t)
}

// awaitReplicas returns when so many brokers have all that is in the topics.
func (c *loadedCluster) awaitReplicas(t *testing.T, want int) {
	t.Helper()
	client, clicks, disconnect := c.kafkaClient()
	defer disconnect()
	topics := []string{clicks, c.setting("LINKSTREAM_KAFKA_CHANGES_TOPIC"), "__consumer_offsets"}
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		res, err := client.Metadata(t.Context(), &kafka.MetadataRequest{Topics: topics})
		if err != nil {
			return err
		}
		for _, topic := range res.Topics {
			if topic.Error != nil || len(topic.Partitions) == 0 {
				return fmt.Errorf("topic %q: %w", topic.Name, topic.Error)
			}
			for _, p := range topic.Partitions {
				if len(p.Isr) != want {
					return fmt.Errorf("partition %d of %q is on %d brokers, want %d", p.ID, topic.Name, len(p.Isr), want)
				}
			}
		}
		return nil
	})
}

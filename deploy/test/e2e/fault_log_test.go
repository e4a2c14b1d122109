//go:build engines && nightly

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema/testkit"
)

// replaceRunning replaces the topic of clicks under load. What was in the old log and not counted is lost, and the
// worker counts it from the gaps in the lanes.
func (c *loadedCluster) replaceRunning(t *testing.T) {
	c.allow(counterEpochs, counterMissing)
	for range 2 {
		c.pause(time.Second)
		c.replaceTopic(t)
		c.awaitRise(t, "ingest", counterCounted, 300) // of each lane some: a gap is seen when a later click of the lane is counted
	}
}

// replaceCounted replaces the topic when everything that was acknowledged is counted: nothing is lost. The edge is dead
// meanwhile, and ingest runs.
func (c *loadedCluster) replaceCounted(t *testing.T) {
	c.allow(counterEpochs)
	edge := c.program("edge")
	edge.awaitReady(t)
	c.crash(t, edge)
	c.awaitCounted(t)
	c.replaceTopic(t)
	edge.launch(t)
}

// kafkaClient returns a client of the brokers, to be closed, and the name of the topic of clicks.
func (c *loadedCluster) kafkaClient() (client *kafka.Client, topic string, disconnect func()) {
	transport := new(kafka.Transport)
	client = &kafka.Client{Addr: kafka.TCP(strings.Split(c.setting("LINKSTREAM_KAFKA_BROKERS"), ",")...),
		Timeout: time.Minute, Transport: transport}
	return client, c.setting("LINKSTREAM_KAFKA_CLICKS_TOPIC"), transport.CloseIdleConnections
}

// replaceTopic deletes the topic of clicks and creates it again, as an operator may do by mistake.
func (c *loadedCluster) replaceTopic(t *testing.T) {
	t.Helper()
	client, topic, disconnect := c.kafkaClient()
	defer disconnect()
	testkit.Succeeds(t, func() error {
		res, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		if err == nil {
			err = res.Errors[topic]
		}
		return err
	})
	testkit.Succeeds(t, func() error {
		res, err := client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
			{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}}})
		if err == nil {
			err = res.Errors[topic]
		}
		return err
	})
}

// awaitNoTopic returns when brokers have none of the deleted topic's partitions any more. The answer to the deletion
// does not say so: they acknowledge clicks, and lose them, until they have heard of it.
func (c *loadedCluster) awaitNoTopic(t *testing.T) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		ends, err := c.logEnds(t.Context())
		if !errors.Is(err, kafka.UnknownTopicOrPartition) {
			return fmt.Errorf("the deleted topic ends at %v, error %v", ends, err)
		}
		for p, end := range ends {
			if end >= 0 {
				return fmt.Errorf("partition %d of the deleted topic ends at %d", p, end)
			}
		}
		return nil
	})
}

// awaitCounted returns when everything that is in the topic is counted. Nothing is produced meanwhile. The offsets of
// the consumer group do not say so: after the click store was set back, they are those from before.
func (c *loadedCluster) awaitCounted(t *testing.T) {
	t.Helper()
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		ends, err := c.logEnds(t.Context())
		if err != nil {
			return err
		}
		counted := c.counted(t)
		for p, end := range ends {
			if end > 0 && counted[p] != end {
				err = fmt.Errorf("partition %d ends at %d and is counted to %d", p, end, counted[p])
			}
		}
		return err
	})
}

// logEnds returns the log end offsets of all partitions.
func (c *loadedCluster) logEnds(ctx context.Context) (map[int]int64, error) {
	client, topic, disconnect := c.kafkaClient()
	defer disconnect()
	var requests []kafka.OffsetRequest
	for p := range partitions {
		requests = append(requests, kafka.LastOffsetOf(p))
	}
	res, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: requests}})
	if err != nil {
		return nil, err
	}
	ends := make(map[int]int64)
	for _, p := range res.Topics[topic] {
		ends[p.Partition], err = p.LastOffset, errors.Join(err, p.Error)
	}
	return ends, err
}

// counted returns the offsets to which partitions are counted.
func (c *loadedCluster) counted(t *testing.T) map[int]int64 {
	t.Helper()
	conn := c.openClickHouse(t)
	defer testkit.Close(t, conn)
	rows, err := conn.Query(t.Context(), `SELECT kafka_partition, tupleElement(max((kafka_epoch, kafka_next)), 2) FROM clicks
		GROUP BY kafka_partition`)
	testkit.Must(t, err)
	defer testkit.Close(t, rows)
	offsets := make(map[int]int64)
	for rows.Next() {
		var partition int32
		var next int64
		testkit.Must(t, rows.Scan(&partition, &next))
		offsets[int(partition)] = next
	}
	testkit.Must(t, rows.Err())
	return offsets
}

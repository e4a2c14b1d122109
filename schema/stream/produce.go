package stream

import (
	"bytes"
	"context"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// Produce appends the batch to a partition of the topic of clicks. It returns nil only once all in-sync replicas have
// it. After an error it may be there or not, or arrive later. A request whose context was cancelled may still be under
// way and read the batch, which must not be filled again then.
func (c *Client) Produce(ctx context.Context, partition int, batch *Batch) error {
	return c.produce(ctx, c.cfg.Clicks, partition, batch)
}

// ProduceDead appends the batch to the topic of what could not be read.
func (c *Client) ProduceDead(ctx context.Context, batch *Batch) error {
	return c.produce(ctx, c.cfg.Dead, 0, batch)
}

func (c *Client) produce(ctx context.Context, topic string, partition int, batch *Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	set, err := c.compressor.recordSet(batch)
	if err != nil {
		return fmt.Errorf("produce to %s/%d: %w", topic, partition, err)
	}
	res, err := c.client.RawProduce(ctx, &kafka.RawProduceRequest{
		Topic:        topic,
		Partition:    partition,
		RequiredAcks: kafka.RequireAll,
		RawRecords:   protocol.RawRecordSet{Reader: bytes.NewReader(set)},
	})
	return produced(topic, partition, res, err)
}

// produceRecords appends records that have keys: too few at a time, and too short, to compress.
func (c *Client) produceRecords(ctx context.Context, topic string, partition int, records kafka.RecordReader) error {
	res, err := c.client.Produce(ctx, &kafka.ProduceRequest{
		Topic:        topic,
		Partition:    partition,
		RequiredAcks: kafka.RequireAll,
		Records:      records,
	})
	return produced(topic, partition, res, err)
}

func produced(topic string, partition int, res *kafka.ProduceResponse, err error) error {
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return fmt.Errorf("produce to %s/%d: %w", topic, partition, err)
	}
	return nil
}

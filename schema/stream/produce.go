package stream

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go"
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
	return c.produceRecords(ctx, topic, partition, &batchReader{batch: batch, record: kafka.Record{Time: batch.Time}})
}

func (c *Client) produceRecords(ctx context.Context, topic string, partition int, records kafka.RecordReader) error {
	res, err := c.client.Produce(ctx, &kafka.ProduceRequest{
		Topic:        topic,
		Partition:    partition,
		RequiredAcks: kafka.RequireAll,
		Compression:  codecs[c.cfg.Compression],
		Records:      records,
	})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return fmt.Errorf("produce to %s/%d: %w", topic, partition, err)
	}
	return nil
}

// batchReader reads a batch as kafka-go wants it. The record and its value are reused for each.
type batchReader struct {
	batch  *Batch
	next   int
	record kafka.Record
	value  value
}

func (r *batchReader) ReadRecord() (*kafka.Record, error) {
	if r.next == r.batch.Len() {
		return nil, io.EOF
	}
	r.value.Reset(r.batch.Value(r.next))
	r.record.Value = &r.value
	r.next++
	return &r.record, nil
}

type value struct{ bytes.Reader }

func (*value) Close() error { return nil }

package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"linkstream/schema/span"
)

// Errors that a repetition of the batch does not resolve.
var (
	// ErrRefused means that the batch is never accepted as it is: it is larger than the topic's max.message.bytes, or, on
	// a machine without a broker, has a record that is not a click.
	ErrRefused = errors.New("the batch is never accepted")
	// ErrNoPartition means that the topic does not have the partition, as far as the client knows: it may have been
	// created a moment ago.
	ErrNoPartition = errors.New("the topic does not have the partition")
)

// Produce appends the batch to a partition of the clicks topic with acks=all: nil means that every in-sync replica has
// it. After an error the batch may have been appended, or may still be appended later. After a context ends, the
// request may go on and read the batch: do not Append to it or Reset it then; SetTime and Drop are allowed. ErrRefused
// and ErrNoPartition mean that this attempt has failed for good.
func (c *Client) Produce(ctx context.Context, partition int, batch *Batch) error {
	return c.produce(ctx, c.cfg.Clicks, partition, batch)
}

// deadPartition is the partition of the dead letter topic: there is one.
const deadPartition = 0

// ProduceDead appends the batch to the dead letter topic. It has the same outcomes as Produce.
func (c *Client) ProduceDead(ctx context.Context, batch *Batch) error {
	ctx, s := span.Start(ctx, "publish dead letters", trace.SpanKindProducer)
	defer s.End()
	s.SetAttributes(attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.destination.name", c.cfg.Dead),
		attribute.Int64("messaging.batch.message_count", int64(batch.Len())))
	err := c.produce(ctx, c.cfg.Dead, deadPartition, batch)
	span.Fail(s, err)
	return err
}

func (c *Client) produce(ctx context.Context, topic string, partition int, batch *Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	res, err := c.client.RawProduce(ctx, &kafka.RawProduceRequest{
		Topic:        topic,
		Partition:    partition,
		RequiredAcks: kafka.RequireAll,
		RawRecords:   protocol.RawRecordSet{Reader: bytes.NewReader(c.encoder.encode(batch))},
	})
	return produceError(topic, partition, res, err)
}

// produceKeyed appends records with keys, uncompressed: changes are few and short.
func (c *Client) produceKeyed(ctx context.Context, topic string, partition int, records kafka.RecordReader) error {
	res, err := c.client.Produce(ctx, &kafka.ProduceRequest{
		Topic:        topic,
		Partition:    partition,
		RequiredAcks: kafka.RequireAll,
		Records:      records,
	})
	return produceError(topic, partition, res, err)
}

func produceError(topic string, partition int, res *kafka.ProduceResponse, err error) error {
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return fmt.Errorf("produce to %s/%d: %w", topic, partition, explainProduce(err))
	}
	return nil
}

// explainProduce adds advice to an error.
func explainProduce(err error) error {
	switch {
	case errors.Is(err, kafka.MessageSizeTooLarge), errors.Is(err, kafka.RecordListTooLarge):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case errors.Is(err, kafka.UnknownTopicOrPartition), errors.Is(err, protocol.ErrNoPartition):
		return fmt.Errorf("%w: %w", ErrNoPartition, err)
	case errors.Is(err, kafka.InvalidTimestamp):
		return fmt.Errorf("is the clock of this machine right? %w", err)
	}
	return err
}

package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
)

// maxFetchBytes bounds the compressed size of a fetch. A single batch that is larger arrives whole.
const maxFetchBytes = 1 << 20

// ErrOffsetOutOfRange means that a partition has no record at the offset and will not get one there: retention deleted
// it, or the partition ends before it because the topic has been replaced.
var ErrOffsetOutOfRange = errors.New("offset out of range")

// Record is a record of a partition. Value is borrowed: it is valid until the callback that received it returns.
type Record struct {
	Offset int64
	Time   time.Time
	Value  []byte
}

// Fetch calls each for the records of a clicks partition from offset on. It waits up to wait, at most half of
// requestTimeout, for the first record; no record is not an error. It returns the number of records behind the last one
// that each accepted, also when each returned an error. An error of each ends the fetch and is returned. A batch with a
// wrong CRC is an error, and none of its records reaches each. ErrOffsetOutOfRange if the partition does not have the
// offset.
func (c *Client) Fetch(ctx context.Context, partition int, offset int64, wait time.Duration,
	each func(Record) error) (lag int64, err error) {
	return c.fetch(ctx, c.cfg.Clicks, partition, offset, maxFetchBytes, wait, each)
}

// FetchDead is Fetch for the partition of the dead letter topic that ProduceDead appends to.
func (c *Client) FetchDead(ctx context.Context, offset int64, wait time.Duration, each func(Record) error) (lag int64,
	err error) {
	return c.fetch(ctx, c.cfg.Dead, deadPartition, offset, maxFetchBytes, wait, each)
}

func (c *Client) fetch(ctx context.Context, topic string, partition int, offset, maxBytes int64, wait time.Duration,
	each func(Record) error) (lag int64, err error) {
	res, err := c.client.Fetch(ctx, &kafka.FetchRequest{Topic: topic, Partition: partition, Offset: offset,
		MinBytes: 1, MaxBytes: maxBytes, MaxWait: wait})
	if err == nil {
		err = res.Error
	}
	if errors.Is(err, kafka.OffsetOutOfRange) {
		err = fmt.Errorf("%w: %w", ErrOffsetOutOfRange, err)
	}
	if err != nil {
		return 0, fmt.Errorf("fetch %s/%d from %d: %w", topic, partition, offset, err)
	}
	next, err := readRecords(res.Records, offset, each)
	if err != nil {
		err = fmt.Errorf("read %s/%d from %d: %w", topic, partition, offset, err)
	}
	return max(0, res.HighWatermark-next), err
}

func readRecords(records kafka.RecordReader, offset int64, each func(Record) error) (next int64, err error) {
	var value []byte
	for next = offset; ; {
		r, err := records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return next, nil
		}
		if err != nil {
			return next, err
		}
		value = value[:0]
		if r.Value != nil {
			value = append(value, make([]byte, r.Value.Len())...)
			_, err = io.ReadFull(r.Value, value)
			r.Value.Close()
		}
		if r.Key != nil {
			r.Key.Close()
		}
		if err != nil {
			return next, err
		}
		if r.Offset < offset {
			continue // the batch starts before the requested offset
		}
		if err := each(Record{Offset: r.Offset, Time: r.Time, Value: value}); err != nil {
			return next, err
		}
		next = r.Offset + 1
	}
}

// Offsets returns the log start offset of a clicks partition and its log end offset, which the next record gets.
func (c *Client) Offsets(ctx context.Context, partition int) (start, end int64, err error) {
	return c.offsets(ctx, c.cfg.Clicks, partition)
}

// DeadOffsets is Offsets for the dead letter topic.
func (c *Client) DeadOffsets(ctx context.Context) (start, end int64, err error) {
	return c.offsets(ctx, c.cfg.Dead, deadPartition)
}

func (c *Client) offsets(ctx context.Context, topic string, partition int) (start, end int64, err error) {
	res, err := c.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		topic: {kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition)}}})
	if err != nil {
		return 0, 0, fmt.Errorf("list offsets of %s/%d: %w", topic, partition, err)
	}
	err = kafka.UnknownTopicOrPartition
	for _, p := range res.Topics[topic] {
		if p.Partition == partition {
			start, end, err = p.FirstOffset, p.LastOffset, p.Error
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("list offsets of %s/%d: %w", topic, partition, err)
	}
	return start, end, nil
}

package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	maxFetch = 1 << 20 // bytes of one fetch, as they are on the wire; a batch that is larger comes whole

	maxHeartbeat = time.Second // between heartbeats, whose answers say when the group shares partitions out again
	rejoinPause  = time.Second // between attempts to join
)

// ErrOffsetOutOfRange says that a partition has no record at the offset asked for and will not get one: it has been
// deleted by the topic's retention, or the topic is not the one that was read before.
var ErrOffsetOutOfRange = errors.New("the offset is outside of the partition")

// Record is a record of a partition. Value is borrowed until the callback that was given it returns.
type Record struct {
	Offset int64
	Time   time.Time
	Value  []byte
}

// Fetch calls each for the records of a partition of the topic of clicks that follow offset, which is included. It
// waits up to wait, but no longer than half of requestTimeout, for the first one; none is no error. It returns how many
// records the partition has beyond those, also where an error of each was the last. A batch that is damaged is an
// error, and none of it is passed to each.
func (c *Client) Fetch(ctx context.Context, partition int, offset int64, wait time.Duration,
	each func(Record) error) (lag int64, err error) {
	return c.fetch(ctx, c.cfg.Clicks, partition, offset, wait, each)
}

func (c *Client) fetch(ctx context.Context, topic string, partition int, offset int64, wait time.Duration,
	each func(Record) error) (lag int64, err error) {
	return c.fetchBytes(ctx, topic, partition, offset, maxFetch, wait, each)
}

// fetchBytes is fetch with a bound of what is sent: a batch that is larger comes whole.
func (c *Client) fetchBytes(ctx context.Context, topic string, partition int, offset, bytes int64, wait time.Duration,
	each func(Record) error) (lag int64, err error) {
	res, err := c.client.Fetch(ctx, &kafka.FetchRequest{Topic: topic, Partition: partition, Offset: offset,
		MinBytes: 1, MaxBytes: bytes, MaxWait: wait})
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
			continue // a batch may start before the offset asked for
		}
		if err := each(Record{Offset: r.Offset, Time: r.Time, Value: value}); err != nil {
			return next, err
		}
		next = r.Offset + 1
	}
}

// Offsets returns the offsets of a partition's first record and of the one that will come next.
func (c *Client) Offsets(ctx context.Context, partition int) (first, next int64, err error) {
	return c.offsets(ctx, c.cfg.Clicks, partition)
}

func (c *Client) offsets(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	res, err := c.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		topic: {kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition)}}})
	if err != nil {
		return 0, 0, fmt.Errorf("list offsets of %s/%d: %w", topic, partition, err)
	}
	err = kafka.UnknownTopicOrPartition
	for _, p := range res.Topics[topic] {
		if p.Partition == partition {
			first, next, err = p.FirstOffset, p.LastOffset, p.Error
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("list offsets of %s/%d: %w", topic, partition, err)
	}
	return first, next, nil
}

// Assignment is a partition that the group has given to this member for as long as a context lasts.
type Assignment struct {
	Partition int
	// Commit tells the group how far the partition has been counted, for tools that show lag; nothing resumes from it.
	Commit func(next int64) error
}

// Consume is a member of the consumer group until ctx is done. It calls work, in a goroutine of its own, for each
// partition it is given; work returns when its context ends, and only then may the partition go to another member.
// Whenever the group has shared the partitions out, member is called likewise, for as long as that lasts, with how many
// this member has got, which may be none.
func (c *Client) Consume(ctx context.Context, member func(context.Context, int), work func(context.Context, Assignment)) error {
	// The number is read before the group shares partitions out, so that none which is added meanwhile stays unread.
	// kafka-go's own watcher reads it afterwards, and rejoins without a pause while the topic does not exist. An error
	// counts as none, for which awaitPartitions makes up.
	partitions, _ := c.partitionsOrNone(ctx)
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.brokers(), Topics: []string{c.cfg.Clicks},
		Dialer:         c.dialer(),
		SessionTimeout: c.cfg.Session, RebalanceTimeout: c.cfg.Session, HeartbeatInterval: min(maxHeartbeat, c.cfg.Session/4),
		JoinGroupBackoff: rejoinPause,
	})
	if err != nil {
		return fmt.Errorf("join consumer group %q: %w", c.cfg.Group, err)
	}
	defer group.Close() // waits until work has returned
	waiting := false
	for {
		generation, err := group.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			// The group tries again by itself, rejoinPause later: a pause here would only delay that.
			if !waiting {
				c.log.Warn("waiting for the consumer group", "group", c.cfg.Group, "error", hint(err))
			}
			waiting = true
			continue
		}
		waiting = false
		assigned := generation.Assignments[c.cfg.Clicks]
		c.log.Info("joined the consumer group", "group", c.cfg.Group, "partitions", len(assigned))
		generation.Start(func(ctx context.Context) { member(ctx, len(assigned)) })
		generation.Start(func(ctx context.Context) { partitions = c.awaitPartitions(ctx, partitions) })
		for _, p := range assigned {
			generation.Start(func(ctx context.Context) {
				work(ctx, Assignment{Partition: p.ID, Commit: func(next int64) error {
					return generation.CommitOffsets(map[string]map[int]int64{c.cfg.Clicks: {p.ID: next}})
				}})
			})
		}
	}
}

// awaitPartitions returns how many partitions the topic has once that is not what it was. Its return ends the
// generation: the group shares the partitions out again.
func (c *Client) awaitPartitions(ctx context.Context, was int) int {
	for ctx.Err() == nil {
		if n, err := c.partitionsOrNone(ctx); err == nil && n != was {
			return n
		}
		Sleep(ctx, metadataTTL)
	}
	return was
}

// partitionsOrNone is like Partitions, but a topic that does not exist is no error.
func (c *Client) partitionsOrNone(ctx context.Context) (int, error) {
	n, err := c.Partitions(ctx)
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		return 0, nil
	}
	return n, err
}

// Sleep waits for d or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

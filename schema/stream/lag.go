package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// errStop ends a fetch after its first record.
var errStop = errors.New("stop")

// Lag returns the consumer group's lag: the number of records of the clicks topic that are not yet counted, and the
// oldest one's timestamp, or the zero time. position returns the click store's next offset of a partition; Lag calls it
// only for partitions that the group has not committed to the end.
//
// A partition is counted up to the greater of the store's offset and the group's commit. The store may not know of
// records that were dropped after the last counted click, repetitions for example, but a worker commits their offsets.
func (c *Client) Lag(ctx context.Context, position func(ctx context.Context, partition int) (int64, error)) (
	records int64, oldest time.Time, err error) {
	n, err := c.Partitions(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	logs, err := c.listOffsets(ctx, n)
	if err != nil {
		return 0, time.Time{}, err
	}
	committed, err := c.committed(ctx, n)
	if err != nil {
		return 0, time.Time{}, err
	}
	for partition, log := range logs {
		if committed[partition] == log.LastOffset {
			continue
		}
		next, err := position(ctx, partition)
		if err != nil {
			return 0, time.Time{}, fmt.Errorf("read position of partition %d: %w", partition, err)
		}
		next = max(next, log.FirstOffset) // deleted records are not lag
		if committed[partition] < log.LastOffset {
			next = max(next, committed[partition]) // a commit beyond the end belongs to an earlier topic
		}
		if next >= log.LastOffset {
			continue
		}
		at, err := c.timestampAt(ctx, partition, next)
		if err != nil {
			return 0, time.Time{}, err
		}
		records += log.LastOffset - next
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return records, oldest, nil
}

// listOffsets returns the log start and log end offsets of the clicks partitions 0 to n-1.
func (c *Client) listOffsets(ctx context.Context, n int) ([]kafka.PartitionOffsets, error) {
	var requests []kafka.OffsetRequest
	for partition := range n {
		requests = append(requests, kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition))
	}
	topic := c.cfg.Clicks
	res, err := c.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: requests}})
	if err != nil {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	logs := make([]kafka.PartitionOffsets, n)
	answered := 0
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("list offsets of %s/%d: %w", topic, p.Partition, p.Error)
		}
		if p.Partition >= 0 && p.Partition < n {
			logs[p.Partition] = p
			answered++
		}
	}
	if answered != n {
		return nil, fmt.Errorf("list offsets of %s: got %d of %d partitions", topic, answered, n)
	}
	return logs, nil
}

// committed returns the consumer group's offsets in the clicks partitions 0 to n-1, -1 for a partition without a
// commit.
func (c *Client) committed(ctx context.Context, n int) ([]int64, error) {
	offsets, partitions := make([]int64, n), make([]int, n)
	for partition := range n {
		offsets[partition], partitions[partition] = -1, partition
	}
	res, err := c.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: c.cfg.Group,
		Topics: map[string][]int{c.cfg.Clicks: partitions}})
	if err == nil {
		err = res.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) { // the group has never had a member
		return offsets, nil
	}
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of group %q: %w", c.cfg.Group, err)
	}
	for _, p := range res.Topics[c.cfg.Clicks] {
		if p.Error != nil {
			return nil, fmt.Errorf("fetch offset of group %q in %s/%d: %w", c.cfg.Group, c.cfg.Clicks, p.Partition, p.Error)
		}
		if p.Partition >= 0 && p.Partition < n {
			offsets[p.Partition] = p.CommittedOffset
		}
	}
	return offsets, nil
}

// timestampAt returns the timestamp of the first record at or after offset.
func (c *Client) timestampAt(ctx context.Context, partition int, offset int64) (at time.Time, err error) {
	_, err = c.fetch(ctx, c.cfg.Clicks, partition, offset, 1, requestTimeout, func(r Record) error {
		at = r.Time
		return errStop
	})
	if errors.Is(err, errStop) {
		return at, nil
	}
	if err == nil {
		err = fmt.Errorf("fetch %s/%d from %d: no record", c.cfg.Clicks, partition, offset)
	}
	return time.Time{}, err
}

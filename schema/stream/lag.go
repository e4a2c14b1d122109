package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// errFirst ends a fetch after its first record.
var errFirst = errors.New("one record is enough")

// Lag returns how many records of the topic of clicks wait to be counted, and the time of the oldest of them:
// what was in the log before then is counted. The time is zero where none waits. position returns what a click store
// says is the first offset of a partition that it has not accounted for; it is asked only about partitions that the
// consumer group has not reached the end of.
//
// The group's commit is heeded because a store need not know of records that were dropped behind the last counted
// click, of repetitions for example: by its word alone they would wait for ever. A worker commits what is accounted
// for, so the greater of the two is right.
func (c *Client) Lag(ctx context.Context, position func(ctx context.Context, partition int) (int64, error)) (
	records int64, oldest time.Time, err error) {
	n, err := c.Partitions(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	ends, err := c.ends(ctx, n)
	if err != nil {
		return 0, time.Time{}, err
	}
	committed, err := c.committed(ctx, n)
	if err != nil {
		return 0, time.Time{}, err
	}
	for partition, end := range ends {
		if committed[partition] == end.LastOffset {
			continue
		}
		next, err := position(ctx, partition)
		if err != nil {
			return 0, time.Time{}, fmt.Errorf("read position of partition %d: %w", partition, err)
		}
		// What the retention has deleted cannot be counted any more, and a commit beyond the end is of an earlier topic.
		next = max(next, end.FirstOffset)
		if committed[partition] < end.LastOffset {
			next = max(next, committed[partition])
		}
		if next >= end.LastOffset {
			continue
		}
		first, err := c.timeOf(ctx, partition, next)
		if err != nil {
			return 0, time.Time{}, err
		}
		records += end.LastOffset - next
		if oldest.IsZero() || first.Before(oldest) {
			oldest = first
		}
	}
	return records, oldest, nil
}

// ends returns the first and the next offset of each of the partitions 0 to n-1 of the topic of clicks.
func (c *Client) ends(ctx context.Context, n int) ([]kafka.PartitionOffsets, error) {
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
	ends := make([]kafka.PartitionOffsets, n)
	answered := 0
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("list offsets of %s/%d: %w", topic, p.Partition, p.Error)
		}
		if p.Partition >= 0 && p.Partition < n {
			ends[p.Partition] = p
			answered++
		}
	}
	if answered != n {
		return nil, fmt.Errorf("list offsets of %s: got %d of %d partitions", topic, answered, n)
	}
	return ends, nil
}

// committed returns the consumer group's offset of each of the partitions 0 to n-1, -1 where there is none.
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
	if errors.Is(err, kafka.GroupIdNotFound) { // nobody has counted yet
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

// timeOf returns when the record at offset, or the one that follows where it was deleted, came into the log.
func (c *Client) timeOf(ctx context.Context, partition int, offset int64) (at time.Time, err error) {
	_, err = c.fetchBytes(ctx, c.cfg.Clicks, partition, offset, 1, requestTimeout, func(r Record) error {
		at = r.Time
		return errFirst
	})
	if errors.Is(err, errFirst) {
		return at, nil
	}
	if err == nil {
		err = fmt.Errorf("fetch %s/%d from %d: got no record", c.cfg.Clicks, partition, offset)
	}
	return time.Time{}, err
}

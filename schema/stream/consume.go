package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema/span"
)

const (
	maxHeartbeat = time.Second // between heartbeats: their answers announce a rebalance
	rejoinPause  = time.Second // between attempts to join the group
)

// Assignment is a partition that the group assigns to this member. It ends with the context it came with.
type Assignment struct {
	Partition int
	Committed int64 // the offset that was committed last, below 0 if none was
	// Commit commits the offset of the next record to count. Nothing resumes from it: it is for tools that show lag.
	Commit func(next int64) error
}

// Consume is a member of the consumer group until ctx is done. After each rebalance it calls onAssigned with the number
// of partitions that this member has, which may be 0, and work once per partition, each call in its own goroutine with
// a context that ends at the next rebalance. Another member gets the partition after work has returned, or after the
// session timeout if this member does not answer. Consume returns once all these calls have returned.
func (c *Client) Consume(ctx context.Context, onAssigned func(context.Context, int),
	work func(context.Context, Assignment)) error {
	var partitions int // that the group has assigned, as far as this member knows
	balancer := &countingBalancer{GroupBalancer: kafka.RangeGroupBalancer{}, partitions: &partitions}
	// The member that leads the group counts the partitions that it assigns. The others count them before the group does.
	// kafka-go's own watcher counts them afterwards, and rejoins without a pause while the topic does not exist. After an
	// error the number is 0, and awaitPartitionChange corrects it.
	partitions, _ = c.partitionsOrZero(ctx)
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.brokers(), Topics: []string{c.cfg.Clicks},
		Dialer:         c.dialer(),
		SessionTimeout: c.cfg.Session, RebalanceTimeout: c.cfg.Session, HeartbeatInterval: min(maxHeartbeat, c.cfg.Session/4),
		JoinGroupBackoff: rejoinPause, GroupBalancers: []kafka.GroupBalancer{balancer},
	})
	if err != nil {
		return fmt.Errorf("join consumer group %q: %w", c.cfg.Group, err)
	}
	defer group.Close() // waits for onAssigned and work
	waiting := false
	for {
		generation, err := group.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			// The group pauses for rejoinPause by itself before it tries again.
			if !waiting {
				c.log.Warn("cannot join the consumer group, retrying", "group", c.cfg.Group, "error", hint(err))
			}
			waiting = true
			continue
		}
		waiting = false
		assigned := generation.Assignments[c.cfg.Clicks]
		c.log.Info("joined the consumer group", "group", c.cfg.Group, "partitions", len(assigned))
		generation.Start(func(ctx context.Context) { onAssigned(ctx, len(assigned)) })
		generation.Start(func(ctx context.Context) { partitions = c.awaitPartitionChange(ctx, partitions) })
		for _, p := range assigned {
			generation.Start(func(running context.Context) {
				work(span.Like(running, ctx), Assignment{Partition: p.ID, Committed: p.Offset, Commit: func(next int64) error {
					return generation.CommitOffsets(map[string]map[int]int64{c.cfg.Clicks: {p.ID: next}})
				}})
			})
		}
	}
}

// countingBalancer notes how many partitions it assigns. A topic that is deleted and created again may be away just
// then.
type countingBalancer struct {
	kafka.GroupBalancer
	partitions *int
}

// AssignGroups implements kafka.GroupBalancer. The group calls it between two generations, if this member leads it.
func (b *countingBalancer) AssignGroups(members []kafka.GroupMember,
	partitions []kafka.Partition) kafka.GroupMemberAssignments {
	*b.partitions = len(partitions)
	return b.GroupBalancer.AssignGroups(members, partitions)
}

// awaitPartitionChange returns the topic's number of partitions once it differs from before. Its return ends the
// generation, so the group rebalances. A generation lasts for rejoinPause at least, also while brokers do not agree.
func (c *Client) awaitPartitionChange(ctx context.Context, before int) int {
	Sleep(ctx, rejoinPause)
	for ctx.Err() == nil {
		if n, err := c.partitionsOrZero(ctx); err == nil && n != before {
			return n
		}
		Sleep(ctx, metadataTTL)
	}
	return before
}

// partitionsOrZero is Partitions, but a topic that does not exist has 0 partitions.
func (c *Client) partitionsOrZero(ctx context.Context) (int, error) {
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

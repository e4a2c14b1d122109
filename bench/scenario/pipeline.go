package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	produceBytes  = 256 << 10   // of a batch
	fillLimit     = 16          // partitions of a topic that are filled at the same time
	leaderTimeout = time.Minute // until a partition of a new topic has a leader
)

// runPipeline measures clicks on their way from a topic to the store, and from the spool to a topic.
func runPipeline(ctx context.Context, r *run) error {
	on, err := r.startEngines(ctx)
	if err != nil {
		return err
	}
	broker, err := on.Broker(ctx)
	if err != nil {
		return err
	}
	topics := broker.Topics("counted")
	if err := r.fillTopic(ctx, topics); err != nil {
		return err
	}
	fetch := contender.Fetch(topics, r.cfg.Clicks, broker.Processes)
	contenders := []*contender.Contender{fetch}
	insert, err := on.BareClickInsert(ctx)
	if err != nil {
		return err
	}
	if insert != nil {
		bare := contender.ClickInserts(insert, r.cfg.Clicks, workload.NewLinks(r.cfg.Links))
		contenders = []*contender.Contender{bare, fetch}
	}
	count := contender.Count(topics, on, r.cfg.Clicks, r.cfg.Links, broker.Processes)
	err = errors.Join(r.closedLoop(ctx, "counted click", append(contenders, count.Contender)), count.Close(ctx))
	r.check("clicks in the stores of all rounds", int64(r.cfg.Clicks)*int64(count.Rounds), count.Stored)
	return errors.Join(err, r.measureShipping(ctx, broker))
}

// measureShipping measures clicks on their way from the spool to a topic.
func (r *run) measureShipping(ctx context.Context, broker system.Broker) error {
	topics := broker.Topics("shipped")
	client, err := contender.CreateTopics(ctx, topics)
	if err != nil {
		return err
	}
	defer client.Close()
	ship := contender.Ship(client, r.group.Path("shipping"), r.cfg.Clicks, broker.Processes)
	bare := contender.Produce(topics, r.cfg.Clicks, broker.Processes)
	if err := r.closedLoop(ctx, "shipped click", []*contender.Contender{bare, ship.Contender}); err != nil {
		return err
	}
	r.check("clicks that the broker acknowledged in all rounds", int64(r.cfg.Clicks)*int64(ship.Rounds), ship.Shipped)
	return nil
}

// fillTopic creates the topic of clicks and produces clicks to it, one lane per partition.
func (r *run) fillTopic(ctx context.Context, topics stream.Config) error {
	r.logf("producing %d clicks to a topic", r.cfg.Clicks)
	client, err := contender.CreateTopics(ctx, topics)
	if err != nil {
		return err
	}
	defer client.Close()
	var group errgroup.Group
	group.SetLimit(fillLimit)
	for partition := range topics.Partitions {
		group.Go(func() error {
			return fillPartition(ctx, client, partition, topics.Partitions, r.cfg.Clicks, r.cfg.Links)
		})
	}
	return group.Wait()
}

// fillPartition produces a partition's share of the clicks.
func fillPartition(ctx context.Context, client *stream.Client, partition, partitions, clicks, links int) error {
	visitors, popularity := workload.Visitors(), load.NewPopularity(links, uint64(partition))
	lane := schema.Lane{Incarnation: schema.Incarnation([]byte("benchmark clicks")), Number: uint32(partition)}
	var batch stream.Batch
	var encoded []byte
	share := (clicks + partition) / partitions // the shares add up to clicks
	batch.Reset(time.Now())
	for seq := range share {
		visitor := visitors[(seq*partitions+partition)%len(visitors)]
		encoded = schema.AppendClick(encoded[:0], &schema.Click{Lane: lane, Seq: uint64(seq) + 1,
			LinkID: int64(popularity.Next()) + 1, AccountID: workload.Account, ClickedAt: time.Now(),
			UserAgent: []byte(visitor.UserAgent), Referrer: []byte(visitor.Referrer), Network: []byte{192, 0, 2}})
		batch.Append(nil, encoded)
		if batch.Size() < produceBytes && seq < share-1 {
			continue
		}
		if err := produce(ctx, client, partition, &batch); err != nil {
			return err
		}
		batch.Reset(time.Now())
	}
	return nil
}

// produce produces a batch. The brokers may not have agreed yet which of them leads a partition of a new topic.
func produce(ctx context.Context, client *stream.Client, partition int, batch *stream.Batch) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := client.Produce(ctx, partition, batch)
		if err != nil && !errors.Is(err, kafka.NotLeaderForPartition) && !errors.Is(err, kafka.LeaderNotAvailable) &&
			!errors.Is(err, stream.ErrNoPartition) {
			err = backoff.Permanent(err) // the batch may have been appended
		}
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(leaderTimeout))
	return err
}

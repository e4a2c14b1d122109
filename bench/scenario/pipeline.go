package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
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

// clickRates are the rates at which the CPU time of all processes is measured, in clicks per second.
var clickRates = []float64{0, 5, 100, 10_000}

// runPipeline measures clicks on their way to the statistics: with a broker, from the spool to a topic and from there
// to the store, compared with bare loops; then the whole service.
func runPipeline(ctx context.Context, r *run) error {
	links := workload.NewLinks(r.cfg.Links + probes)
	visits := r.visits(links, r.cfg.Links)
	service, err := r.open(ctx, links, nil)
	if err != nil {
		return err
	}
	if on := service.Engines; on != nil && on.Broker() != nil {
		if err := r.measureCounting(ctx, on); err != nil {
			return err
		}
	}
	if err := r.measureFreshness(ctx, service, visits); err != nil {
		return err
	}
	if err := r.measureRates(ctx, service, visits); err != nil {
		return err
	}
	return r.verify(ctx, service, visits)
}

// measureRates measures the CPU time of each process of a started service, engines included, at fixed rates of clicks.
func (r *run) measureRates(ctx context.Context, service *system.Service, visits *workload.Visits) error {
	if len(service.Processes) == 0 {
		return nil
	}
	target := contender.Visited(service, visits, r.load(false)).Target
	for round := range r.cfg.Rounds {
		for _, rate := range clickRates {
			err := r.measureCPU(round, fmt.Sprintf("CPU at %.0f clicks per second", rate), service,
				func() error { return r.visitAt(ctx, service, target, rate) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// measureCPU measures the CPU time of each process of a service while clicks are made and counted.
func (r *run) measureCPU(round int, name string, service *system.Service,
	visit func() error) error {
	defer r.watch()()
	before, err := proc.ReadAll(service.Processes)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := visit(); err != nil {
		return err
	}
	after, err := proc.ReadAll(service.Processes)
	if err != nil {
		return err
	}
	var sum float64
	for i, p := range service.Processes {
		used := max(0, after[i].CPU-before[i].CPU) // when descendants end, their CPU time is rounded down
		share := 100 * used.Seconds() / time.Since(began).Seconds()
		sum += share
		r.Add(name, p.Name, "% of a core", share)
	}
	r.logf("%s: %s: %.1f %% of a core", r.roundName(round+1), name, sum)
	return nil
}

// visitAt visits links at a rate for -duration, and waits until the clicks are counted.
func (r *run) visitAt(ctx context.Context, service *system.Service, target load.Target, rate float64) error {
	window := r.cfg.Duration
	if rate == 0 {
		waiting, cancel := context.WithTimeout(ctx, window)
		defer cancel()
		<-waiting.Done()
		return ctx.Err()
	}
	target.Conns = min(target.Conns, max(1, int(rate)))
	result, err := load.Open(ctx, target, rate, window)
	if err != nil {
		return err
	}
	r.AddAt(rate, report.UnsentMetric("redirect"), service.Name, "", float64(result.Unsent))
	return service.Counted.Await(ctx, result.Answers)
}

// measureCounting measures workers that count the clicks of a topic into the store.
func (r *run) measureCounting(ctx context.Context, on system.Engines) error {
	topics := on.Broker().Topics("counted")
	if err := r.fillTopic(ctx, topics); err != nil {
		return err
	}
	insert, err := on.BareClickInsert(ctx)
	if err != nil {
		return err
	}
	bare := contender.ClickInserts(insert, r.cfg.Clicks, workload.NewLinks(r.cfg.Links))
	count := contender.Count(topics, on, r.cfg.Clicks, r.cfg.Links)
	err = errors.Join(r.closedLoop(ctx, "counted click", []*contender.Contender{bare, count.Contender}), count.Close(ctx))
	r.check("clicks in the stores of all rounds", int64(r.cfg.Clicks)*int64(count.Rounds), count.Stored)
	return err
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
	visitors, popularity := workload.Visitors(workload.DefaultVisitors), load.NewPopularity(links, uint64(partition))
	lane := schema.Lane{Incarnation: schema.Incarnation([]byte("benchmark clicks")), Number: uint32(partition)}
	var batch stream.Batch
	var encoded []byte
	share := (clicks + partition) / partitions // the shares add up to clicks
	batch.Reset(time.Now())
	for seq := range share {
		visitor := visitors[(seq*partitions+partition)%len(visitors)]
		encoded = schema.AppendClick(encoded[:0], &schema.Click{Lane: lane, Seq: uint64(seq) + 1,
			LinkID: int64(popularity.Next()) + 1, AccountID: workload.Account, ClickedAt: time.Now(),
			UserAgent: []byte(visitor.UserAgent), Referrer: []byte(visitor.Referrer), Network: []byte{192, 0, 2},
			Visitor: 1 + uint64(seq)*0x9e3779b97f4a7c15})
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

package scenario

import (
	"context"
	"errors"
	"fmt"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const scaleRate = 8000 // redirects per second of each node in the open loop, unless -rate says otherwise

var (
	scaleNodes      = []int{1, 2, 4}
	scalePartitions = []int{8, 64, 256} // of the topic; the first one for several workers
)

// runScale measures the cost of an operation on more nodes: redirects of edges that are pinned to CPUs, compared with
// as many bare servers, and clicks counted by the workers of a group, and by one worker from more partitions.
func runScale(ctx context.Context, r *run) error {
	on, err := r.startEngines(ctx)
	if err != nil {
		return err
	}
	if err := r.scaleEdges(ctx, on); err != nil || on.Broker() == nil {
		return err
	}
	return r.scaleWorkers(ctx, on)
}

func (r *run) scaleEdges(ctx context.Context, on system.Engines) error {
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	r.cfg.unlessSet("rate", func() { r.cfg.Rate = scaleRate })
	r.logf("creating %d links", r.cfg.Links)
	if _, err := system.CreateLinks(ctx, on, visits.Links); err != nil {
		return err
	}
	starter := r.starter(on, visits)
	var counters []*system.Counter
	var contenders []*contender.Contender
	for _, start := range []func(context.Context, int) (*contender.Nodes, error){starter.Edges, starter.BareServers} {
		for i, count := range scaleNodes {
			nodes, err := start(ctx, count)
			if err != nil {
				return err
			}
			nodes.Reference = i == 0
			counters, contenders = append(counters, nodes.Counters...), append(contenders, nodes.Contender)
		}
	}
	if err := r.closedLoop(ctx, "redirect", contenders); err != nil {
		return err
	}
	if err := r.openLoop(ctx, "redirect", contenders); err != nil {
		return err
	}
	return r.checkCounters(ctx, counters...)
}

func (r *run) scaleWorkers(ctx context.Context, on system.Engines) (err error) {
	var all []*contender.Counting
	var contenders []*contender.Contender
	for i, partitions := range scalePartitions {
		topics := on.Broker().Topics(fmt.Sprint("scale-", partitions))
		topics.Partitions = partitions
		if err := r.fillTopic(ctx, topics); err != nil {
			return err
		}
		for _, workers := range scaleNodes {
			if i > 0 && workers > 1 {
				break
			}
			c := contender.Count(topics, on, r.cfg.Clicks, r.cfg.Links)
			c.Workers, c.Name = workers, fmt.Sprintf("workers: %d, partitions: %d", workers, partitions)
			c.AddStore(on.ClickProcesses())
			all, contenders = append(all, c), append(contenders, c.Contender)
		}
	}
	err = r.closedLoop(ctx, "counted click", contenders)
	for _, c := range all {
		err = errors.Join(err, c.Close(ctx))
		r.check("clicks in the stores of all rounds: "+c.Name, int64(r.cfg.Clicks)*int64(c.Rounds), c.Stored)
		r.Add("failed inserts", c.Name, "", float64(c.FailedInserts)) // each was repeated, as the clicks in the stores show
		if c.Failure != nil {
			r.logf("%s: the first failed insert: %v", c.Name, c.Failure)
		}
		r.Add("clicks per insert", c.Name, "", float64(c.Stored)/float64(max(1, c.Inserts)))
	}
	return err
}

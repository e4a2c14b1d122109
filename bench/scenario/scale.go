package scenario

import (
	"context"
	"errors"
	"fmt"

	"linkstream/bench/contender"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const scale = "scale"

const scaleRate = 8000 // redirects per second of each node in the open loop, unless -rate says otherwise

var (
	scaleNodes      = []int{1, 2, 4}
	scalePartitions = []int{8, 64, 256} // of the topic; the first one for several workers
)

// runScale measures what an operation costs on more nodes: redirects of edges that are pinned to CPUs, beside as many bare servers, clicks counted by workers of
// one group, and by one worker from topics of more partitions.
func runScale(ctx context.Context, r *run) error {
	on, err := r.startEngines(ctx)
	if err != nil {
		return err
	}
	return errors.Join(r.scaleEdges(ctx, on), r.scaleWorkers(ctx, on))
}

func (r *run) scaleEdges(ctx context.Context, on system.Engines) error {
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	r.cfg.unlessSet("rate", func() { r.cfg.Rate = scaleRate })
	r.logf("creating %d links", r.cfg.Links)
	if _, err := system.CreateLinks(ctx, on, visits.Links); err != nil {
		return err
	}
	starter := r.starter(on, visits)
	var all []*contender.Nodes
	var contenders []*contender.Contender
	for _, start := range []func(context.Context, int) (*contender.Nodes, error){starter.Nodes, starter.BareNodes} {
		for i, count := range scaleNodes {
			nodes, err := start(ctx, count)
			if err != nil {
				return err
			}
			nodes.Reference = i == 0
			all, contenders = append(all, nodes), append(contenders, nodes.Contender)
		}
	}
	if err := r.closedLoop(ctx, "redirect", contenders); err != nil {
		return err
	}
	if err := r.openLoop(ctx, "redirect", contenders); err != nil {
		return err
	}
	for _, nodes := range all {
		for _, counter := range nodes.Counters {
			if err := r.checkCounter(ctx, counter); err != nil {
				return err
			}
		}
		nodes.Kill()
	}
	return nil
}

func (r *run) scaleWorkers(ctx context.Context, on system.Engines) (err error) {
	broker, err := on.Broker(ctx)
	if err != nil {
		return err
	}
	var all []*contender.Counting
	var contenders []*contender.Contender
	for i, partitions := range scalePartitions {
		topics := broker.Topics(fmt.Sprint("scale-", partitions))
		topics.Partitions = partitions
		if err := r.fillTopic(ctx, topics); err != nil {
			return err
		}
		for _, workers := range scaleNodes {
			if i > 0 && workers > 1 {
				break
			}
			c := contender.Count(topics, on, r.cfg.Clicks, r.cfg.Links, nil)
			c.Workers, c.Name = workers, contender.Workers(workers, partitions)
			c.AddStore(on.ClickProcesses())
			all, contenders = append(all, c), append(contenders, c.Contender)
		}
	}
	err = r.closedLoop(ctx, "counted click", contenders)
	for _, c := range all {
		err = errors.Join(err, c.Close(ctx))
		r.check("clicks in the stores of all rounds: "+c.Name, int64(r.cfg.Clicks)*int64(c.Rounds), c.Stored)
		r.check("failed inserts: "+c.Name, 0, c.FailedInserts)
		if c.Failure != nil {
			r.logf("%s: the first failed insert: %v", c.Name, c.Failure)
		}
		r.report.Add("clicks per insert: "+c.Name, "", report.Higher, float64(c.Stored)/float64(max(1, c.Inserts)))
	}
	return err
}

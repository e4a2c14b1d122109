package contender

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/system"
)

// Nodes are several edges that share the load. Their clicks stay in their spools.
type Nodes struct {
	*Contender
	Counters []*system.Counter // of the clicks of each edge

	edges   []*Edge
	targets []load.Target
	answers []int64 // of each edge in the last round
}

// Nodes starts edges, each on one CPU; they share CPUs if there are fewer. Each has the load of one.
func (s *Starter) Nodes(ctx context.Context, count int) (*Nodes, error) {
	n := &Nodes{answers: make([]int64, count)}
	nowhere := system.Broker{Addrs: "127.0.0.1:1"} // nothing listens there
	var processes []proc.Process
	for i := range count {
		e, err := s.newEdge(ctx, fmt.Sprintf("edge %d of %d", i+1, count), nowhere.Topics("nodes"))
		if err != nil {
			return nil, err
		}
		e.cpu = i % runtime.NumCPU()
		if err := e.Start(ctx); err != nil {
			return nil, err
		}
		n.edges = append(n.edges, e)
		n.targets = append(n.targets, s.Load.Server(e.Name, e.Addr, s.Visits.Uncounted(e.Addr)).Target)
		n.Counters = append(n.Counters, &system.Counter{Name: e.Name, Base: e.Ops, Metric: "linkstream_edge_clicks_recorded_total"})
		processes = append(processes, proc.Process{Name: e.Name, Usage: e.child.Usage})
	}
	name := numbered(count, "edge")
	n.Contender = &Contender{Name: name, Processes: []proc.Process{proc.Sum(name, processes...)}, Work: n.work, Settle: n.settle}
	return n, nil
}

// numbered returns "1 edge", "2 edges", and so on.
func numbered(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprint(n, " ", noun, "s")
}

// Workers names workers that count a topic of so many partitions.
func Workers(workers, partitions int) string {
	return fmt.Sprintf("%s, %d partitions", numbered(workers, "worker"), partitions)
}

// work loads all edges at the same time.
func (n *Nodes) work(ctx context.Context, window time.Duration) (load.Result, error) {
	results := make([]load.Result, len(n.targets))
	group, ctx := errgroup.WithContext(ctx)
	for i, target := range n.targets {
		group.Go(func() (err error) {
			results[i], err = load.Closed(ctx, target, window)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return load.Result{}, fmt.Errorf("%s: %w", n.Name, err)
	}
	var sum load.Result
	for i, result := range results {
		n.answers[i] = result.Answers
		sum.Answers += result.Answers
		sum.Elapsed = max(sum.Elapsed, result.Elapsed)
	}
	n.Done.Add(sum.Answers)
	return sum, nil
}

// settle waits until all clicks are recorded.
func (n *Nodes) settle(ctx context.Context, _ int64) error {
	for i, counter := range n.Counters {
		if err := counter.Settle(ctx, n.answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends the edges. A stop would wait for the broker that they do not have.
func (n *Nodes) Kill() {
	for _, e := range n.edges {
		e.child.Kill()
	}
}

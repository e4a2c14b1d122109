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

// Nodes are several servers, each pinned to one CPU and with the load of one. With fewer CPUs than servers, they share.
type Nodes struct {
	*Contender
	Counters []*system.Counter // of the clicks of each edge

	nodes   []*Contender
	answers []int64 // of each node in the last round
}

// Edges starts edges whose clicks stay in their spools.
func (s *Starter) Edges(ctx context.Context, count int) (*Nodes, error) {
	n := new(Nodes)
	for i := range count {
		name := fmt.Sprintf("edge %d of %d", i+1, count)
		e, err := s.startEdgeOn(ctx, i%runtime.NumCPU(), name, noBroker.Topics("nodes"))
		if err != nil {
			return nil, err
		}
		n.nodes = append(n.nodes, s.Load.Server(name, e.addr, s.Visits.Uncounted(e.addr),
			proc.Process{Name: name, Usage: e.Usage}))
		n.Counters = append(n.Counters, &system.Counter{Name: name, Base: e.ops,
			Metric: "linkstream_edge_clicks_recorded_total"})
	}
	return n.named(numbered(count, "edge")), nil
}

// BareServers starts bare servers. They show the cost of more processes and more load on one machine to any server.
func (s *Starter) BareServers(ctx context.Context, count int) (*Nodes, error) {
	n := new(Nodes)
	for i := range count {
		name := fmt.Sprintf("bare server %d of %d", i+1, count)
		child, addr, err := s.startBare(ctx, i%runtime.NumCPU(), name, nil)
		if err != nil {
			return nil, err
		}
		n.nodes = append(n.nodes, s.Load.Server(name, addr, s.Visits.Bare(addr),
			proc.Process{Name: name, Usage: child.Usage}))
	}
	return n.named(numbered(count, "bare server")), nil
}

// named makes the nodes one contender.
func (n *Nodes) named(name string) *Nodes {
	var processes []proc.Process
	for _, node := range n.nodes {
		processes = append(processes, node.Processes...)
	}
	n.answers = make([]int64, len(n.nodes))
	n.Contender = &Contender{Name: name, Processes: []proc.Process{proc.Sum(name, processes...)}, Drain: n.drain}
	n.Work = func(ctx context.Context, window time.Duration) (load.Result, error) {
		return n.load(ctx, func(ctx context.Context, c *Contender) (load.Result, error) { return c.Work(ctx, window) })
	}
	n.Open = func(ctx context.Context, rate float64, window time.Duration) (load.Result, error) {
		return n.load(ctx, func(ctx context.Context, c *Contender) (load.Result, error) { return c.Open(ctx, rate, window) })
	}
	return n
}

// numbered returns "1 edge", "2 edges", and so on.
func numbered(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprint(n, " ", noun, "s")
}

// load loads all nodes at the same time.
func (n *Nodes) load(ctx context.Context,
	one func(context.Context, *Contender) (load.Result, error)) (load.Result, error) {
	results := make([]load.Result, len(n.nodes))
	group, ctx := errgroup.WithContext(ctx)
	for i, node := range n.nodes {
		group.Go(func() (err error) {
			results[i], err = one(ctx, node)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return load.Result{}, fmt.Errorf("%s: %w", n.Name, err)
	}
	sum := load.NewResult()
	for i, result := range results {
		n.answers[i] = result.Answers
		sum.Merge(result)
		sum.Elapsed = max(sum.Elapsed, result.Elapsed)
	}
	return sum, nil
}

// drain waits until all clicks are recorded. Bare servers record none.
func (n *Nodes) drain(ctx context.Context, _ int64) error {
	for i, counter := range n.Counters {
		if err := counter.Await(ctx, n.answers[i]); err != nil {
			return err
		}
	}
	return nil
}

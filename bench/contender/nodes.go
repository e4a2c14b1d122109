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

// Nodes are several servers that share the load, each on one CPU; they share CPUs if there are fewer. Each has the load of one.
type Nodes struct {
	*Contender
	Counters []*system.Counter // of the clicks of each edge

	children  []*proc.Child
	processes []proc.Process
	targets   []load.Target
	answers   []int64 // of each node in the last round
}

// Nodes starts edges. Their clicks stay in their spools.
func (s *Starter) Nodes(ctx context.Context, count int) (*Nodes, error) {
	n := new(Nodes)
	nowhere := system.Broker{Addrs: "127.0.0.1:1"} // nothing listens there
	for i := range count {
		e, err := s.newEdge(ctx, fmt.Sprintf("edge %d of %d", i+1, count), nowhere.Topics("nodes"))
		if err != nil {
			return nil, err
		}
		e.cpu = cpuOf(i)
		if err := e.Start(ctx); err != nil {
			return nil, err
		}
		n.add(e.Name, e.child, s.Load.Server(e.Name, e.Addr, s.Visits.Uncounted(e.Addr)).Target)
		n.Counters = append(n.Counters, &system.Counter{Name: e.Name, Base: e.Ops, Metric: "linkstream_edge_clicks_recorded_total"})
	}
	return n.named(numbered(count, "edge")), nil
}

// BareNodes starts bare servers on edge/eventloop. They show what sharing the machine with more processes and more load costs any server.
func (s *Starter) BareNodes(ctx context.Context, count int) (*Nodes, error) {
	n := new(Nodes)
	for i := range count {
		name := fmt.Sprintf("bare server %d of %d", i+1, count)
		child, addr, err := s.Group.StartSelfOn(ctx, cpuOf(i), name, bareRole, BareEdge)
		if err != nil {
			return nil, err
		}
		n.add(name, child, s.Load.Server(name, addr, s.Visits.Bare(addr)).Target)
	}
	return n.named(numbered(count, "bare server")), nil
}

// cpuOf returns the CPU of a node.
func cpuOf(node int) int { return node % runtime.NumCPU() }

func (n *Nodes) add(name string, child *proc.Child, target load.Target) {
	n.children, n.targets, n.answers = append(n.children, child), append(n.targets, target), append(n.answers, 0)
	n.processes = append(n.processes, proc.Process{Name: name, Usage: child.Usage})
}

func (n *Nodes) named(name string) *Nodes {
	n.Contender = &Contender{Name: name, Processes: []proc.Process{proc.Sum(name, n.processes...)}}
	n.Work = func(ctx context.Context, window time.Duration) (load.Result, error) {
		return n.load(ctx, func(ctx context.Context, t load.Target) (load.Result, error) { return load.Closed(ctx, t, window) })
	}
	n.Open = func(ctx context.Context, rate float64, window time.Duration) (load.Result, error) {
		return n.load(ctx, func(ctx context.Context, t load.Target) (load.Result, error) { return load.Open(ctx, t, rate, window) })
	}
	if len(n.Counters) > 0 {
		n.Settle = n.settle
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

// Workers names workers that count a topic of so many partitions.
func Workers(workers, partitions int) string {
	return fmt.Sprintf("%s, %d partitions", numbered(workers, "worker"), partitions)
}

// load loads all nodes at the same time.
func (n *Nodes) load(ctx context.Context, one func(context.Context, load.Target) (load.Result, error)) (load.Result, error) {
	results := make([]load.Result, len(n.targets))
	group, ctx := errgroup.WithContext(ctx)
	for i, target := range n.targets {
		group.Go(func() (err error) {
			results[i], err = one(ctx, target)
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

// Kill ends the servers. A stop of edges would wait for the broker that they do not have.
func (n *Nodes) Kill() {
	for _, child := range n.children {
		child.Kill()
	}
}

// Package contender has everything that is measured: parts of linkstream, and the bare servers and loops that they are
// measured beside.
package contender

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/system"
)

// Contender performs an operation that other contenders perform as well.
type Contender struct {
	Name string
	// Processes perform the operation. Contenders are compared by the first one. Empty if the processes are unknown.
	Processes []proc.Process
	// Prepare runs before each round and is not measured. It may be nil.
	Prepare func(ctx context.Context) error
	// Work performs the operation repeatedly. Contenders that process a fixed number of clicks ignore window.
	Work func(ctx context.Context, window time.Duration) (load.Result, error)
	// Open performs rate operations per second, whether or not earlier ones are done. Contenders that are no servers have none.
	Open func(ctx context.Context, rate float64, window time.Duration) (load.Result, error)
	// Settle waits until all work is done that the operations have caused. It may be nil.
	Settle func(ctx context.Context, operations int64) error
	Target load.Target // of a contender that is a server
	// Reference says that the CPU time of the contenders after this one is compared with it, as it is with the first one.
	Reference bool
	Done      atomic.Int64 // operations so far, for the charts over time
}

// Load is the load on each of the servers that are compared with each other.
type Load struct {
	Conns     int  // connections at the same time
	Threads   int  // that generate the load
	Reconnect bool // open a new connection for each request
	TLS       bool // by HTTPS
	Resume    bool // new connections resume the TLS session of an earlier one
}

// Server returns a contender that is an HTTP server.
func (l Load) Server(name, addr string, source func(conn int) load.Source, processes ...proc.Process) *Contender {
	c := &Contender{Name: name, Processes: processes}
	c.Target = load.Target{Addr: addr, Conns: l.Conns, Threads: l.Threads, Reconnect: l.Reconnect, Source: source, Done: &c.Done}
	if l.TLS {
		c.Target.TLS, c.Target.Resume = system.ClientTLS(), l.Resume
	}
	c.Open = func(ctx context.Context, rate float64, window time.Duration) (load.Result, error) {
		return load.Open(ctx, c.Target, rate, window)
	}
	c.Work = func(ctx context.Context, window time.Duration) (load.Result, error) {
		result, err := load.Closed(ctx, c.Target, window)
		if first := int64(l.Conns); err == nil && l.Resume && result.Resumed < (result.Answers-first)/2 {
			err = fmt.Errorf("%s resumes %d TLS sessions of %d", name, result.Resumed, result.Answers)
		}
		return result, err
	}
	return c
}

// AddStore adds the processes of the store of clicks, if they are known, to what an operation costs.
func (c *Contender) AddStore(processes []proc.Process) {
	if len(processes) > 0 {
		all := append(c.Processes[:1:1], processes...)
		c.Processes = append([]proc.Process{proc.Sum("with the store", all...)}, all...)
	}
}

// ProcessName returns the name of one of the processes in a report.
func (c *Contender) ProcessName(p proc.Process) string {
	if len(c.Processes) == 1 {
		return c.Name
	}
	return fmt.Sprintf("%s (%s)", c.Name, p.Name)
}

// Comparable returns the name in a report of the process by which contenders are compared, or the contender's if it has none.
func (c *Contender) Comparable() string {
	if len(c.Processes) == 0 {
		return c.Name
	}
	return c.ProcessName(c.Processes[0])
}

// Outcome is the result of one round.
type Outcome struct {
	Rate    float64       // operations per second
	Costs   []Cost        // of each process
	Settled time.Duration // from the end of the load until all work was done
}

// CPU returns the CPU time by which contenders are compared, in microseconds per operation. It is 0 if the processes are
// unknown.
func (o Outcome) CPU() float64 {
	if len(o.Costs) == 0 {
		return 0
	}
	return o.Costs[0].CPU
}

// Cost is what a process used in a round.
type Cost struct {
	CPU    float64 // microseconds per operation
	Memory float64 // resident at the end, in MiB
}

// Measure performs one round: it prepares the contender, runs work and waits until all caused work is done.
func (c *Contender) Measure(ctx context.Context, work func(context.Context) (load.Result, error)) (Outcome, error) {
	if c.Prepare != nil {
		if err := c.Prepare(ctx); err != nil {
			return Outcome{}, err
		}
	}
	m, err := startMeter(c.Processes)
	if err != nil {
		return Outcome{}, err
	}
	result, err := work(ctx)
	ended := time.Now()
	if err == nil && c.Settle != nil {
		err = c.Settle(ctx, result.Answers)
	}
	settled := time.Since(ended)
	if err != nil {
		return Outcome{}, err
	}
	costs, err := m.stop(result.Answers)
	return Outcome{float64(result.Answers) / result.Elapsed.Seconds(), costs, settled}, err
}

// meter measures the CPU time of processes.
type meter struct {
	processes []proc.Process
	before    []time.Duration
}

func startMeter(processes []proc.Process) (*meter, error) {
	m := &meter{processes: processes}
	for _, p := range processes {
		usage, err := p.Usage()
		if err != nil {
			return nil, err
		}
		m.before = append(m.before, usage.CPU)
	}
	return m, nil
}

// stop returns the cost of each process, divided by the operations.
func (m *meter) stop(operations int64) (costs []Cost, err error) {
	for i, p := range m.processes {
		usage, err := p.Usage()
		if err != nil {
			return nil, err
		}
		cpu := float64((usage.CPU - m.before[i]).Nanoseconds()) / 1e3
		costs = append(costs, Cost{cpu / float64(max(1, operations)), float64(usage.RSS) / (1 << 20)})
	}
	return costs, nil
}

// Package contender has everything that is measured: parts of linkstream, and bare servers and loops to compare them
// with.
package contender

import (
	"context"
	"fmt"
	"time"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
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
	// Open performs rate operations per second, whether or not earlier ones are done. It is nil for loops.
	Open func(ctx context.Context, rate float64, window time.Duration) (load.Result, error)
	// Drain waits until all work is done that the operations have caused. It may be nil.
	Drain  func(ctx context.Context, operations int64) error
	Target load.Target // of a contender that is a server
	// Sources returns the requests of visits to a server that redirects.
	Sources func(*workload.Visits) Source
	// Reference makes the later contenders compared with this one, in addition to the first one.
	Reference bool
}

// Source returns the requests of a connection.
type Source = func(conn int) load.Source

// Load is the load on each of the servers that are compared with each other.
type Load struct {
	Conns     int  // connections at the same time
	Reconnect bool // open a new connection for each request
	TLS       bool
	Resume    bool // new connections resume the TLS session of an earlier one
}

// Server returns a contender that is an HTTP server.
func (l Load) Server(name, addr string, source Source, processes ...proc.Process) *Contender {
	c := &Contender{Name: name, Processes: processes}
	c.Target = load.Target{Addr: addr, Conns: l.Conns, Reconnect: l.Reconnect, Source: source}
	if l.TLS {
		c.Target.TLS, c.Target.Resume = system.ClientTLS(), l.Resume
	}
	c.Open = func(ctx context.Context, rate float64, window time.Duration) (load.Result, error) {
		t := c.Target
		t.Late = max(window, time.Second) // a saturated server need not do all that it was asked for
		return load.Open(ctx, t, rate, window)
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

// Visited returns the whole system as its visitors use it. Its Drain waits until all clicks are counted.
func Visited(s *system.Service, visits *workload.Visits, l Load) *Contender {
	c := l.Server(s.Name, s.Edge, visits.Counted(s.Edge), s.AtEdge...)
	if s.Counted != nil {
		c.Drain = s.Counted.Await
	}
	return c
}

// Called returns the whole system as the clients of its API use it. Each call counts as requests of the rate limit,
// which paces the work at a running system.
func Called(name string, s *system.Service, l Load, requests int, source Source) *Contender {
	c := l.Server(name, s.API.Addr(), source, s.AtAPI...)
	if s.API.Quota > 0 {
		c.Work = func(ctx context.Context, window time.Duration) (load.Result, error) {
			return c.Open(ctx, s.API.Quota/float64(requests), window)
		}
	}
	return c
}

const withStore = "with the store" // the sum that AddStore adds before the processes

// AddStore adds the processes of the store of clicks, if they are known, to the cost of an operation.
func (c *Contender) AddStore(processes []proc.Process) {
	if len(c.Processes) > 0 && len(processes) > 0 {
		all := append(c.Processes[:1:1], processes...)
		c.Processes = append([]proc.Process{proc.Sum(withStore, all...)}, all...)
	}
}

// ProcessName returns the name of one of the processes in a report.
func (c *Contender) ProcessName(p proc.Process) string {
	if len(c.Processes) == 1 {
		return c.Name
	}
	return fmt.Sprintf("%s (%s)", c.Name, p.Name)
}

// Outcome is the result of one round.
type Outcome struct {
	Result    load.Result
	Rate      float64 // operations per second
	Costs     []Cost  // of each process
	Cores     float64 // CPU time of all processes, until all work was done, per time of the load
	Generator float64 // the same of this process
}

// CPU returns the CPU time by which contenders are compared, in microseconds per operation. It is 0 if the processes
// are unknown.
func (o Outcome) CPU() float64 {
	if len(o.Costs) == 0 {
		return 0
	}
	return o.Costs[0].CPU
}

// Cost is the usage of a process in a round.
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
	own, _ := proc.Self() // the generator's; unknown on some systems
	before, err := proc.ReadAll(c.Processes)
	if err != nil {
		return Outcome{}, err
	}
	result, err := work(ctx)
	now, _ := proc.Self()
	if err == nil && c.Drain != nil {
		err = c.Drain(ctx, result.Answers)
	}
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Result: result, Rate: result.Rate(),
		Generator: (now.CPU - own.CPU).Seconds() / result.Elapsed.Seconds()}
	after, err := proc.ReadAll(c.Processes)
	for i := range after {
		used := max(0, after[i].CPU-before[i].CPU) // when descendants end, their CPU time is rounded down
		o.Costs = append(o.Costs, Cost{float64(used.Nanoseconds()) / 1e3 / float64(max(1, result.Answers)),
			float64(after[i].RSS) / (1 << 20)})
		if i == 0 || c.Processes[0].Name != withStore { // that one is the sum of the others
			o.Cores += used.Seconds() / result.Elapsed.Seconds()
		}
	}
	return o, err
}

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"linkstream/bench/load"
	"linkstream/bench/report"
)

// subject is something that does an operation, and is compared with others that do it, too.
type subject struct {
	name string
	// processes do the work, the first one that which subjects are compared by. There are none if they are not ours to
	// look at.
	processes []process
	prepare   func(ctx context.Context) error // what comes before each round, and is not measured; nil: nothing
	// work does the operation again and again for as long as window, and returns how often.
	work   func(ctx context.Context, window time.Duration) (load.Result, error)
	settle func(ctx context.Context, operations int64) error // waits until all that they have caused is done; nil: it is
	target load.Target                                       // of a subject that is a server
	done   atomic.Int64                                      // operations, for the chart over time
}

// newSubject returns a subject that is a server.
func (b *bench) newSubject(name, addr string, source func(int) load.Source, processes ...process) *subject {
	s := &subject{name: name, processes: processes}
	s.target = load.Target{Addr: addr, Conns: b.cfg.Conns, Source: source, Done: &s.done}
	s.work = func(ctx context.Context, window time.Duration) (load.Result, error) {
		return load.Closed(ctx, s.target, window)
	}
	return s
}

// apiSubject returns the whole service as a subject to those who call its API.
func (b *bench) apiSubject(s *runningService, source func(int) load.Source) *subject {
	return b.newSubject(s.name, s.api.addr(), source, s.atAPI...)
}

// rounds has each subject do its work once in each round, after a round that does not count. Subjects take turns, so
// that what slows the machine down for a while slows all of them down, and each round begins with another one. CPU time
// is compared with that of the first subject within a round.
func (b *bench) rounds(ctx context.Context, op string, subjects []*subject) error {
	for _, s := range subjects {
		b.recorder.Rate("throughput", s.name, op+"s/s", func() (float64, bool) { return float64(s.done.Load()), true })
	}
	for round := range b.cfg.Rounds + 1 {
		outcomes := make([]outcome, len(subjects))
		for i := range subjects {
			i = (i + round) % len(subjects)
			s := subjects[i]
			o, err := measureOnce(ctx, s, func(ctx context.Context) (load.Result, error) { return s.work(ctx, b.cfg.Round) })
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			outcomes[i] = o
			b.say("round %d of %d: %s: %.0f %ss/s, %.2f µs of CPU each", round, b.cfg.Rounds, s.name, o.rate, op, o.cpu())
		}
		if round > 0 {
			b.addRound(op, subjects, outcomes)
		}
	}
	return nil
}

// outcome is what became of a subject in a round.
type outcome struct {
	rate    float64       // operations a second
	costs   []cost        // of each process
	settled time.Duration // from the end of the load until all that it has caused was done
}

// cpu returns the microseconds of CPU time by which subjects are compared, 0 if the processes are not ours to look at.
func (o outcome) cpu() float64 {
	if len(o.costs) == 0 {
		return 0
	}
	return o.costs[0].cpu
}

// measureOnce measures what a subject's work costs, with all that it causes.
func measureOnce(ctx context.Context, s *subject, work func(context.Context) (load.Result, error)) (outcome, error) {
	if s.prepare != nil {
		if err := s.prepare(ctx); err != nil {
			return outcome{}, err
		}
	}
	m, err := begin(s.processes)
	if err != nil {
		return outcome{}, err
	}
	result, err := work(ctx)
	ended := time.Now()
	if err == nil && s.settle != nil {
		err = s.settle(ctx, result.Answers)
	}
	settled := time.Since(ended)
	if err != nil {
		return outcome{}, err
	}
	costs, err := m.end(result.Answers)
	return outcome{float64(result.Answers) / result.Elapsed.Seconds(), costs, settled}, err
}

// addRound adds what became of all subjects in a round, in their order.
func (b *bench) addRound(op string, subjects []*subject, outcomes []outcome) {
	for i, s := range subjects {
		b.report.Add(ceiling(op, s), "1/s", report.Higher, outcomes[i].rate)
		if s.settle != nil {
			b.report.Add(fmt.Sprintf("from the last %s until all is done: %s", op, s.name), "ms", report.Lower,
				float64(outcomes[i].settled.Microseconds())/1e3)
		}
	}
	b.addCPU(fmt.Sprintf("CPU of a %s", op), subjects, outcomes)
	b.addMemory("resident memory", subjects, outcomes)
}

// addMemory adds what the processes have at the end of a round.
func (b *bench) addMemory(name string, subjects []*subject, outcomes []outcome) {
	for i, s := range subjects {
		for k, p := range s.processes {
			b.report.Add(name+": "+s.of(p), "MiB", report.Lower, outcomes[i].costs[k].memory)
		}
	}
}

// ceiling is the name of the metric that says how often a subject can do the operation.
func ceiling(op string, s *subject) string { return fmt.Sprintf("%ss/s at most: %s", op, s.name) }

// addCPU adds the CPU times of an operation in a round, and their ratios to that of the first subject.
func (b *bench) addCPU(name string, subjects []*subject, outcomes []outcome) {
	for i, s := range subjects {
		for k, p := range s.processes {
			b.report.Add(name+": "+s.of(p), "µs", report.Lower, outcomes[i].costs[k].cpu)
		}
	}
	for i, s := range subjects[1:] {
		if own, first := outcomes[i+1].cpu(), outcomes[0].cpu(); own > 0 && first > 0 {
			b.report.Add(fmt.Sprintf("%s: %s / %s", name, s.name, subjects[0].name), "ratio", report.Lower, own/first)
		}
	}
}

// of names one of the subject's processes.
func (s *subject) of(p process) string {
	if len(s.processes) == 1 {
		return s.name
	}
	return fmt.Sprintf("%s (%s)", s.name, p.name)
}

// cost is what a process took for an operation, and what it has.
type cost struct {
	cpu    float64 // microseconds for each operation
	memory float64 // MiB
}

// meter measures the CPU time of processes from its beginning to its end.
type meter struct {
	processes []process
	before    []time.Duration
}

func begin(processes []process) (*meter, error) {
	m := &meter{processes: processes}
	for _, p := range processes {
		usage, err := p.usage()
		if err != nil {
			return nil, err
		}
		m.before = append(m.before, usage.CPU)
	}
	return m, nil
}

// end returns the cost of each process for each of so many operations.
func (m *meter) end(operations int64) (costs []cost, err error) {
	for i, p := range m.processes {
		usage, err := p.usage()
		if err != nil {
			return nil, err
		}
		cpu := float64((usage.CPU - m.before[i]).Nanoseconds()) / 1e3
		costs = append(costs, cost{cpu / float64(max(1, operations)), float64(usage.RSS) / (1 << 20)})
	}
	return costs, nil
}

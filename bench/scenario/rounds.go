package scenario

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
)

// The names of metrics. op is the operation in the singular, such as "redirect". Package report names the metrics of
// open loops.

func rateMetric(op string) string { return op + "s per second, closed loop" }

func cpuMetric(op string) string { return "CPU per " + op }

const (
	openLoop     = ", open loop"
	machineName  = "the machine"
	othersMetric = "CPU of other processes"
	stealMetric  = "CPU that the hypervisor took"
)

// round measures one round of a contender, and the rest of the machine meanwhile.
func (r *run) round(ctx context.Context, c *contender.Contender,
	work func(context.Context) (load.Result, error)) (contender.Outcome, error) {
	defer r.watch()()
	o, err := c.Measure(ctx, work)
	if err != nil {
		return o, fmt.Errorf("%s: %w", c.Name, err)
	}
	return o, nil
}

// watch begins to measure what the machine does for others, and returns the function that adds it to the report.
func (r *run) watch() (done func()) {
	before, err := proc.ReadMachine(r.outside)
	if err != nil {
		return func() {} // not on this system
	}
	return func() {
		if after, err := proc.ReadMachine(r.outside); err == nil && after.All > before.All {
			share := func(a, b time.Duration) float64 {
				return 100 * max(0, (a-b).Seconds()) / (after.All - before.All).Seconds()
			}
			r.Add(othersMetric, machineName, "% of all cores", share(after.Others, before.Others))
			r.Add(stealMetric, machineName, "% of all cores", share(after.Stolen, before.Stolen))
		}
	}
}

// closedLoop measures each contender once per round, after a warm-up round that does not count. Contenders take turns,
// and each round begins with a different one, so that a slow phase of the machine slows all of them down. CPU time is
// compared with the first contender's in the same round.
func (r *run) closedLoop(ctx context.Context, op string, contenders []*contender.Contender) error {
	for round := range r.cfg.Rounds + 1 {
		outcomes := make([]contender.Outcome, len(contenders))
		for i := range contenders {
			i = (i + round) % len(contenders)
			c := contenders[i]
			o, err := r.round(ctx, c, func(ctx context.Context) (load.Result, error) { return c.Work(ctx, r.cfg.Round) })
			if err != nil {
				return err
			}
			outcomes[i] = o
			r.logf("%s: %s: %.0f %ss/s, %.2f µs of CPU per %s", r.roundName(round), c.Name, o.Rate, op, o.CPU(), op)
		}
		if round > 0 {
			r.addRound(op, contenders, outcomes)
		}
	}
	return nil
}

// roundName names a round in the progress; round 0 is the warm-up.
func (r *run) roundName(round int) string {
	if round == 0 {
		return "warm-up"
	}
	return fmt.Sprintf("round %d of %d", round, r.cfg.Rounds)
}

// addRound adds the outcomes of one round of a closed loop.
func (r *run) addRound(op string, contenders []*contender.Contender, outcomes []contender.Outcome) {
	r.addCPU(0, cpuMetric(op), contenders, outcomes)
	for i, c := range contenders {
		r.Add(rateMetric(op), c.Name, "1/s", outcomes[i].Rate)
		if n := outcomes[i].Result.Reconnects; n > 0 {
			r.Add("connections that the server closed", c.Name, "", float64(n))
		}
		for k, p := range c.Processes {
			r.Add("resident memory", c.ProcessName(p), "MiB", outcomes[i].Costs[k].Memory)
		}
	}
}

// addCPU adds the CPU times of one round, and their ratios to the first contender and to the references. rate is the
// rate of an open loop, or 0.
func (r *run) addCPU(rate float64, name string, contenders []*contender.Contender, outcomes []contender.Outcome) {
	for i, c := range contenders {
		for k, p := range c.Processes {
			r.AddAt(rate, name, c.ProcessName(p), "µs", outcomes[i].Costs[k].CPU)
		}
	}
	for k, reference := range contenders {
		if k > 0 && !reference.Reference {
			continue
		}
		for i := k + 1; i < len(contenders); i++ {
			if own, other := outcomes[i].CPU(), outcomes[k].CPU(); own > 0 && other > 0 {
				r.AddAt(rate, name, contenders[i].Name+" / "+reference.Name, "ratio", own/other)
			}
		}
	}
}

// openRates returns the rates of an open loop: the configured ones, or half of the slowest contender's closed loop.
func (r *run) openRates(op string, contenders []*contender.Contender) []float64 {
	if len(r.cfg.Rates) > 0 {
		return r.cfg.Rates
	}
	least := math.Inf(1)
	for _, c := range contenders {
		least = min(least, r.Metric(rateMetric(op), c.Name).Median())
	}
	return []float64{least / 2}
}

// openLoop measures the latency of each contender at each rate.
func (r *run) openLoop(ctx context.Context, op string, contenders []*contender.Contender) error {
	for _, rate := range r.openRates(op, contenders) {
		if err := r.openLoopAt(ctx, op, rate, contenders); err != nil {
			return err
		}
	}
	return nil
}

// openLoopAt measures the latency of each contender at a rate. Contenders take turns as in closedLoop, and there is a
// shorter warm-up round as well.
func (r *run) openLoopAt(ctx context.Context, op string, rate float64, contenders []*contender.Contender) error {
	results := make([][]load.Result, len(contenders))
	defer func() { // also of a run that ends early
		for i, c := range contenders {
			r.addLatencies(op, c.Name, rate, results[i])
		}
	}()
	for round := range r.cfg.Rounds + 1 {
		window := r.cfg.Duration
		if round == 0 {
			window = min(window, warmUp)
		}
		outcomes := make([]contender.Outcome, len(contenders))
		for i := range contenders {
			i = (i + round) % len(contenders)
			c := contenders[i]
			o, err := r.round(ctx, c, func(ctx context.Context) (load.Result, error) { return c.Open(ctx, rate, window) })
			if err != nil {
				return err
			}
			outcomes[i] = o
			if round > 0 {
				results[i] = append(results[i], o.Result)
				r.addOpen(op, c.Name, rate, o)
			}
			r.logf("open loop, %s: %s: asked for %.0f, achieved %.0f %ss/s: p50 %.2f ms, p99 %.2f ms", r.roundName(round),
				c.Name, rate, o.Rate, op, millis(o.Result.Latency.ValueAtPercentile(50)),
				millis(o.Result.Latency.ValueAtPercentile(99)))
		}
		if round > 0 {
			r.addCPU(rate, cpuMetric(op)+openLoop, contenders, outcomes)
		}
	}
	return nil
}

const (
	warmUp = time.Second // of an open loop
	// A percentile is shown if at least this many samples of all rounds are above it, and at least leastSamples in all.
	leastAbove   = 10
	leastSamples = 1000
)

// addOpen adds the rate and the cost of one round of an open loop.
func (r *run) addOpen(op, name string, rate float64, o contender.Outcome) {
	r.AddAt(rate, report.AchievedMetric(op), name, "1/s", o.Rate)
	r.AddAt(rate, report.UnsentMetric(op), name, "", float64(o.Result.Unsent))
	if len(o.Costs) > 0 {
		r.AddAt(rate, report.CoresMetric(op), name, "cores", o.Cores)
	}
	r.AddAt(rate, "CPU of the load generator for "+op+"s"+openLoop, name, "cores", o.Generator)
}

// addLatencies adds the latencies of all rounds of an open loop.
func (r *run) addLatencies(op, name string, rate float64, rounds []load.Result) {
	sum := load.NewResult()
	for _, result := range rounds {
		sum.Merge(result)
	}
	for _, p := range slices.Compact(slices.Sorted(slices.Values([]float64{50, 99, 99.9, r.cfg.SLO.Percentile}))) {
		if n := float64(sum.Answers); n < leastSamples || n*(100-p)/100 < leastAbove*(1-1e-9) {
			continue
		}
		for _, result := range rounds {
			r.AddAt(rate, report.LatencyMetric(op, p), name, "ms", millis(result.Latency.ValueAtPercentile(p)))
			if p == 50 || p == 99 {
				r.AddAt(rate, report.SentMetric(op, p), name, "ms", millis(result.Sent.ValueAtPercentile(p)))
				// The part of the latency in which the generator was late, or all connections were busy.
				r.AddAt(rate, report.DelayMetric(op, p), name, "ms", millis(result.SendDelay.ValueAtPercentile(p)))
			}
		}
	}
	if sum.Answers > 0 {
		r.AddLatency(op, name, rate, sum.Latency)
	}
}

func millis(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }

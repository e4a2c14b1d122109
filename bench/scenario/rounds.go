package scenario

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/contender"
	"linkstream/bench/load"
)

// The names of metrics. op is the operation in the singular, such as "redirect".

func rateMetric(op string) string { return op + "s per second, closed loop" }

func cpuMetric(op string) string { return "CPU per " + op }

func latencyMetric(op string, percentile float64) string {
	return fmt.Sprintf("%s latency p%v, open loop", op, percentile)
}

const openLoop = ", open loop"

// closedLoop measures each contender once per round, after a warm-up round that does not count. Contenders take turns,
// and each round begins with a different one, so that a slow phase of the machine slows all of them down. CPU time is
// compared with the first contender's in the same round.
func (r *run) closedLoop(ctx context.Context, op string, contenders []*contender.Contender) error {
	for round := range r.cfg.Rounds + 1 {
		outcomes := make([]contender.Outcome, len(contenders))
		for i := range contenders {
			i = (i + round) % len(contenders)
			c := contenders[i]
			o, err := c.Measure(ctx, func(ctx context.Context) (load.Result, error) { return c.Work(ctx, r.cfg.Round) })
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
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
	r.addCPU(cpuMetric(op), contenders, outcomes)
	for i, c := range contenders {
		r.Add(rateMetric(op), c.Name, "1/s", outcomes[i].Rate)
		if c.Drain != nil {
			r.Add("time to drain after the last "+op, c.Name, "ms", millis(outcomes[i].Drained.Nanoseconds()))
		}
		for k, p := range c.Processes {
			r.Add("resident memory", c.ProcessName(p), "MiB", outcomes[i].Costs[k].Memory)
		}
	}
}

// addCPU adds the CPU times of one round, and their ratios to the first contender and to the references.
func (r *run) addCPU(name string, contenders []*contender.Contender, outcomes []contender.Outcome) {
	for i, c := range contenders {
		for k, p := range c.Processes {
			r.Add(name, c.ProcessName(p), "µs", outcomes[i].Costs[k].CPU)
		}
	}
	for k, reference := range contenders {
		if k > 0 && !reference.Reference {
			continue
		}
		for i := k + 1; i < len(contenders); i++ {
			if own, other := outcomes[i].CPU(), outcomes[k].CPU(); own > 0 && other > 0 {
				r.Add(name, contenders[i].Name+" / "+reference.Name, "ratio", own/other)
			}
		}
	}
}

// openRate returns the rate of an open loop: the configured one, or half of the slowest contender's closed loop.
func (r *run) openRate(op string, contenders []*contender.Contender) float64 {
	if r.cfg.Rate > 0 {
		return r.cfg.Rate
	}
	least := math.Inf(1)
	for _, c := range contenders {
		least = min(least, r.Metric(rateMetric(op), c.Name).Median())
	}
	return least / 2
}

// openSums are the sums of a contender's open loop over all rounds.
type openSums struct {
	latency *hdrhistogram.Histogram
	unsent  int64
}

// openLoop measures the latency of each contender at a fixed rate. Contenders take turns as in closedLoop.
func (r *run) openLoop(ctx context.Context, op string, contenders []*contender.Contender) error {
	rate := r.openRate(op, contenders)
	sums := make([]openSums, len(contenders))
	for i := range sums {
		sums[i].latency = load.NewHistogram()
	}
	window := r.cfg.Duration / time.Duration(r.cfg.Rounds*len(contenders))
	for round := range r.cfg.Rounds {
		outcomes := make([]contender.Outcome, len(contenders))
		for i := range contenders {
			i = (i + round) % len(contenders)
			c := contenders[i]
			o, err := c.Measure(ctx, func(ctx context.Context) (load.Result, error) {
				result, err := c.Open(ctx, rate, window)
				r.addLatency(op, c.Name, result, &sums[i])
				return result, err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			outcomes[i] = o
			r.logf("open loop, %s: %s: %.0f %ss/s, latency so far: p50 %.2f ms, p99 %.2f ms", r.roundName(round+1),
				c.Name, rate, op,
				millis(sums[i].latency.ValueAtPercentile(50)), millis(sums[i].latency.ValueAtPercentile(99)))
		}
		r.addCPU(cpuMetric(op)+openLoop, contenders, outcomes)
	}
	for i, c := range contenders {
		r.check(fmt.Sprintf("%ss due in the open loop but not sent: %s", op, c.Name), 0, sums[i].unsent)
		r.AddLatency(op, c.Name, rate, sums[i].latency)
	}
	return nil
}

// addLatency adds the latencies of one round of an open loop.
func (r *run) addLatency(op, name string, result load.Result, sums *openSums) {
	if result.Answers == 0 {
		return
	}
	for _, p := range []float64{50, 99, 99.9} {
		r.Add(latencyMetric(op, p), name, "ms", millis(result.Latency.ValueAtPercentile(p)))
	}
	// The part of the latency in which the generator was late, or all connections were busy.
	r.Add(op+" send delay p99, open loop", name, "ms", millis(result.SendDelay.ValueAtPercentile(99)))
	sums.latency.Merge(result.Latency)
	sums.unsent += result.Unsent
}

func millis(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }

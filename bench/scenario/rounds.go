package scenario

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/report"
)

// The names of metrics. op is the operation in the singular, such as "redirect". Package report knows their earlier
// names.

func rateMetric(op, name string) string {
	return fmt.Sprintf("%ss per second, closed loop: %s", op, name)
}

func cpuMetric(op string) string { return "CPU per " + op }

const openLoop = ", open loop"

// closedLoop measures each contender once per round, after a warm-up round that does not count. Contenders take turns,
// and each round begins with a different one: what slows the machine down for a while slows all of them down. CPU time
// is compared with that of the first contender in the same round.
func (r *run) closedLoop(ctx context.Context, op string, contenders []*contender.Contender) error {
	for _, c := range contenders {
		r.recorder.Rate("throughput", c.Name, op+"s/s", func() (float64, bool) { return float64(c.Done.Load()), true })
	}
	if err := r.awaitStart(ctx); err != nil {
		return err
	}
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
			r.logf("%s: %s: %.0f %ss/s, %.2f µs of CPU per %s", roundName(round, r.cfg.Rounds), c.Name, o.Rate, op, o.CPU(), op)
		}
		if round > 0 {
			r.addRound(op, contenders, outcomes)
		}
	}
	return nil
}

// roundName names a round in the progress; round 0 is the warm-up.
func roundName(round, rounds int) string {
	if round == 0 {
		return "warm-up"
	}
	return fmt.Sprintf("round %d of %d", round, rounds)
}

// addRound adds the outcomes of one round to the report.
func (r *run) addRound(op string, contenders []*contender.Contender, outcomes []contender.Outcome) {
	for i, c := range contenders {
		r.report.Add(rateMetric(op, c.Name), "1/s", report.Higher, outcomes[i].Rate)
		if c.Settle != nil {
			r.report.Add(fmt.Sprintf("time to drain after the last %s: %s", op, c.Name), "ms", report.Lower,
				float64(outcomes[i].Settled.Microseconds())/1e3)
		}
	}
	r.addCPU(cpuMetric(op), contenders, outcomes)
	r.addMemory("resident memory", contenders, outcomes)
}

// addCPU adds the CPU times of one round, and their ratios to those of the first contender and of the references.
func (r *run) addCPU(name string, contenders []*contender.Contender, outcomes []contender.Outcome) {
	for i, c := range contenders {
		for k, p := range c.Processes {
			r.report.Add(name+": "+c.ProcessName(p), "µs", report.Lower, outcomes[i].Costs[k].CPU)
		}
	}
	for k, reference := range contenders {
		if k > 0 && !reference.Reference {
			continue
		}
		for i := k + 1; i < len(contenders); i++ {
			if own, other := outcomes[i].CPU(), outcomes[k].CPU(); own > 0 && other > 0 {
				name := fmt.Sprintf("%s: %s / %s", name, contenders[i].Name, reference.Name)
				r.report.Add(name, "ratio", report.Lower, own/other)
			}
		}
	}
}

// addMemory adds the resident memory at the end of one round.
func (r *run) addMemory(name string, contenders []*contender.Contender, outcomes []contender.Outcome) {
	for i, c := range contenders {
		for k, p := range c.Processes {
			r.report.Add(name+": "+c.ProcessName(p), "MiB", report.Lower, outcomes[i].Costs[k].Memory)
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
		least = min(least, r.report.Metric(rateMetric(op, c.Name)).Median())
	}
	return least / 2
}

// openContender is a contender in an open loop, with the sums over all rounds.
type openContender struct {
	*contender.Contender
	rounds             []*hdrhistogram.Histogram // latency of each
	latency, sendDelay *hdrhistogram.Histogram
	unsent             int64
}

// openLoop measures the latency of each contender at a fixed rate. Contenders take turns as in closedLoop.
func (r *run) openLoop(ctx context.Context, op string, contenders []*contender.Contender) error {
	rate := r.openRate(op, contenders)
	open := make([]openContender, len(contenders))
	for i, c := range contenders {
		open[i] = openContender{Contender: c, latency: load.NewHistogram(), sendDelay: load.NewHistogram()}
	}
	window := r.cfg.Duration / time.Duration(r.cfg.Rounds*len(contenders))
	for round := range r.cfg.Rounds {
		outcomes := make([]contender.Outcome, len(contenders))
		for i := range open {
			i = (i + round) % len(open)
			c := &open[i]
			o, err := r.openRound(ctx, c, rate, window)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			outcomes[i] = o
			r.logf("open loop, %s: %s: %.0f %ss/s, latency so far: p50 %.2f ms, p99 %.2f ms", roundName(round+1, r.cfg.Rounds),
				c.Name, rate, op, millis(c.latency.ValueAtPercentile(50)), millis(c.latency.ValueAtPercentile(99)))
		}
		r.addCPU(cpuMetric(op)+openLoop, contenders, outcomes)
		r.addMemory("resident memory"+openLoop, contenders, outcomes)
	}
	for _, c := range open {
		r.check(fmt.Sprintf("%ss due in the open loop but not sent: %s", op, c.Name), 0, c.unsent)
		if err := r.report.AddOpenLoop(op, c.Name, rate, c.rounds); err != nil {
			return err
		}
		if err := r.report.AddLatency(fmt.Sprintf("%s, until the %s was sent", c.Name, op), c.sendDelay); err != nil {
			return err
		}
	}
	return nil
}

// openRound is one round of an open loop.
func (r *run) openRound(ctx context.Context, c *openContender, rate float64, window time.Duration) (
	contender.Outcome, error,
) {
	return c.Measure(ctx, func(ctx context.Context) (load.Result, error) {
		result, err := c.Open(ctx, rate, window)
		if err != nil {
			return result, err
		}
		c.rounds = append(c.rounds, result.Latency)
		c.latency.Merge(result.Latency)
		c.sendDelay.Merge(result.SendDelay)
		c.unsent += result.Unsent
		return result, nil
	})
}

// addGrowth adds how latency and CPU time of an operation grow with the sizes of the contenders in the last open loop.
func (r *run) addGrowth(op, name, of string, sizes []float64, contenders []*contender.Contender) {
	latency := func(c *contender.Contender) string { return c.Name }
	for _, m := range []struct {
		name string
		of   func(*contender.Contender) string
	}{{op + " latency p50", latency}, {op + " latency p99", latency}, {cpuMetric(op), (*contender.Contender).Comparable}} {
		curve := report.Curve{Chart: m.name, Name: name, Of: of, Sizes: sizes}
		for _, c := range contenders {
			measured := r.report.Metric(m.name + openLoop + ": " + m.of(c))
			if len(measured.Samples) == 0 { // CPU time is not known on all systems
				break
			}
			curve.Unit, curve.Values = measured.Unit, append(curve.Values, measured.Median())
		}
		if len(curve.Values) == len(contenders) {
			r.report.Growth = append(r.report.Growth, curve)
		}
	}
}

func millis(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }

package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/proc"
)

// perSecond is the unit of rates, which several generators add up to.
const perSecond = "1/s"

// Merge returns one report of several generators that loaded one service at the same time. Rates are added round by
// round. Latencies are computed from the merged histograms, never from percentiles. All checks are kept. Other metrics,
// such as the CPU time of processes, and the charts over time are left out, because they belong to one generator.
func Merge(reports []*Report) (*Report, error) {
	if len(reports) < 2 {
		return nil, errors.New("merge reports: name two or more")
	}
	merged := &Report{Scenario: reports[0].Scenario, Began: reports[0].Began}
	end := reports[0].end()
	var commands []string
	for i, r := range reports {
		if r.Scenario != merged.Scenario {
			return nil, fmt.Errorf("merge reports: one is of scenario %q, another of %q", merged.Scenario, r.Scenario)
		}
		if r.Began.After(merged.Began) {
			merged.Began = r.Began
		}
		if r.end().Before(end) {
			end = r.end()
		}
		for _, c := range r.Checks {
			c.Name = fmt.Sprintf("generator %d: %s", i+1, c.Name)
			merged.Checks = append(merged.Checks, c)
		}
		if !slices.Contains(commands, r.Command) {
			commands = append(commands, r.Command)
		}
	}
	if merged.Seconds = end.Sub(merged.Began).Seconds(); merged.Seconds <= 0 {
		return nil, errors.New("merge reports: the generators did not run at the same time")
	}
	merged.Command = fmt.Sprintf("%d generators: %s", len(reports), strings.Join(commands, "; "))
	merged.Machine = mergeMachines(reports)
	for _, m := range reports[0].Metrics {
		if m.Unit == perSecond {
			mergeRate(merged, m.Name, reports)
		}
	}
	for _, l := range reports[0].Latencies {
		if err := mergeLatency(merged, l.Operation, l.Contender, reports); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// end returns when the run ended.
func (r *Report) end() time.Time { return r.Began.Add(time.Duration(r.Seconds * float64(time.Second))) }

// mergeMachines describes all machines of the generators.
func mergeMachines(reports []*Report) proc.Machine {
	merged := reports[0].Machine
	var names []string
	same := true
	for _, r := range reports {
		same = same && r.Machine == merged
		if !slices.Contains(names, r.Machine.CPU) {
			names = append(names, r.Machine.CPU)
		}
	}
	if !same {
		merged.CPU = "different machines: " + strings.Join(names, ", ")
	}
	return merged
}

// mergeRate adds the rates of a metric that all reports have.
func mergeRate(merged *Report, name string, reports []*Report) {
	rounds := len(reports[0].Metric(name).Samples)
	for _, r := range reports {
		rounds = min(rounds, len(r.Metric(name).Samples))
	}
	for round := range rounds {
		sum := 0.0
		for _, r := range reports {
			sum += r.Metric(name).Samples[round]
		}
		merged.Add(name, perSecond, Higher, sum)
	}
}

// mergeLatency merges the latencies of an open loop that all reports have.
func mergeLatency(merged *Report, operation, contender string, reports []*Report) error {
	if operation == "" {
		return nil
	}
	var rounds []*hdrhistogram.Histogram
	rate := 0.0
	for i, r := range reports {
		at := slices.IndexFunc(r.Latencies, func(l Latency) bool { return l.Operation == operation && l.Contender == contender })
		if at < 0 {
			return nil
		}
		l := r.Latencies[at]
		rate += l.Rate
		if i > 0 {
			rounds = rounds[:min(len(rounds), len(l.Rounds))]
		}
		for round, encoded := range l.Rounds {
			h, err := decode(l.Name, encoded)
			switch {
			case err != nil:
				return err
			case i == 0:
				rounds = append(rounds, h)
			case round < len(rounds):
				rounds[round].Merge(h)
			}
		}
	}
	return merged.AddOpenLoop(operation, contender, rate, rounds)
}

package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/load"
	"linkstream/bench/report"
)

// quantiles are the percentiles of latency that a report has for each round.
var quantiles = []float64{50, 99, 99.9}

// rate returns the rate of an open loop: the one asked for, else half of the least of the subjects' ceilings, which
// rounds has measured.
func (b *bench) rate(op string, subjects []*subject) float64 {
	if b.cfg.Rate > 0 {
		return b.cfg.Rate
	}
	least := math.Inf(1)
	for _, s := range subjects {
		least = min(least, b.report.Metric(ceiling(op, s)).Median())
	}
	return least / 2
}

// openLoop measures the latency of the subjects' operation at a fixed rate. Subjects take turns as they do in rounds.
func (b *bench) openLoop(ctx context.Context, op string, subjects []*subject) error {
	rate := b.rate(op, subjects)
	paced := make([]pacedSubject, len(subjects))
	for i, s := range subjects {
		paced[i] = pacedSubject{s, load.NewHistogram(), load.NewHistogram(), 0}
	}
	window := b.cfg.Duration / time.Duration(b.cfg.Rounds*len(subjects))
	for round := range b.cfg.Rounds {
		outcomes := make([]outcome, len(subjects))
		for i := range paced {
			i = (i + round) % len(paced)
			s := &paced[i]
			o, err := b.paced(ctx, op, s, rate, window)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			outcomes[i] = o
			b.say("open loop, round %d of %d: %s: %.0f %ss/s, latency so far p50 %.2f ms, p99 %.2f ms", round+1,
				b.cfg.Rounds, s.name, rate, op, millis(s.latency.ValueAtPercentile(50)), millis(s.latency.ValueAtPercentile(99)))
		}
		b.addCPU(fmt.Sprintf("CPU of a %s, open loop", op), subjects, outcomes)
		b.addMemory("resident memory, open loop", subjects, outcomes)
	}
	for _, s := range paced {
		b.report.Checks = append(b.report.Checks, report.Check{
			Name: fmt.Sprintf("%ss that were due in the open loop and never sent: %s", op, s.name), Got: s.unsent})
		if err := b.report.AddLatency(fmt.Sprintf("%s, %.0f/s", s.name, rate), s.latency); err != nil {
			return err
		}
		if err := b.report.AddLatency(fmt.Sprintf("of that, before the %s was sent: %s", op, s.name), s.lateness); err != nil {
			return err
		}
	}
	return nil
}

// pacedSubject is a subject in an open loop, with all of its rounds.
type pacedSubject struct {
	*subject
	latency, lateness *hdrhistogram.Histogram
	unsent            int64
}

// paced is one round of an open loop.
func (b *bench) paced(ctx context.Context, op string, s *pacedSubject, rate float64, window time.Duration) (outcome, error) {
	return measureOnce(ctx, s.subject, func(ctx context.Context) (load.Result, error) {
		result, err := load.Open(ctx, s.target, rate, window)
		if err != nil {
			return result, err
		}
		for _, q := range quantiles {
			b.report.Add(fmt.Sprintf("latency p%v of a %s, open loop: %s", q, op, s.name), "ms", report.Lower,
				millis(result.Latency.ValueAtPercentile(q)))
		}
		s.latency.Merge(result.Latency)
		s.lateness.Merge(result.Lateness)
		s.unsent += result.Unsent
		return result, nil
	})
}

func millis(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }

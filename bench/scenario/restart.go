package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const (
	restart = "restart"

	restartEdges      = 10
	quickRestartEdges = 2
	restartRate       = 2000     // redirects per second at the restarted edge, unless -rate says otherwise
	restartCache      = 64 << 20 // bytes, at least
)

// runRestart restarts edges one after the other, as an upgrade does: cold, without what they had cached, and warm. Each has
// visitors from the moment at which it answers. What reaches the store then is what the restart costs it.
func runRestart(ctx context.Context, r *run) error {
	if r.cfg.Rate == 0 {
		r.cfg.Rate = restartRate
	}
	on, err := r.startEngines(ctx)
	if err != nil {
		return err
	}
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	visits.WarmAll()
	r.logf("creating %d links", r.cfg.Links)
	if _, err := system.CreateLinks(ctx, on, visits.Links); err != nil {
		return err
	}
	starter := r.starter(on, visits)
	count := restartEdges
	if r.cfg.Quick {
		count = quickRestartEdges
	}
	edges, err := starter.Edges(ctx, count, "-edge.cache-bytes", fmt.Sprint(max(restartCache, r.cfg.Links*cachedLinkBytes*5/4)), "-edge.lookup-timeout", "10s")
	if err != nil {
		return err
	}
	r.logf("starting %d edges", len(edges))
	for _, e := range edges {
		if err := e.Start(ctx); err != nil {
			return err
		}
	}
	for round := range r.cfg.Rounds {
		for _, kind := range []string{"cold", "warm"} {
			if err := r.restartRound(ctx, starter, edges, kind); err != nil {
				return err
			}
			r.logf("%s, %s: %.2f look-ups per redirect, %.0f queries per second", roundName(round+1, r.cfg.Rounds), kind,
				last(r.report.Metric("look-ups per redirect after a restart: "+kind)),
				last(r.report.Metric("store queries per second after a restart: "+kind)))
		}
	}
	return nil
}

func last(m report.Metric) float64 { return m.Samples[len(m.Samples)-1] }

// restartRound restarts each edge and loads it for a round.
func (r *run) restartRound(ctx context.Context, starter *contender.Starter, edges []*contender.Edge, kind string) error {
	var misses, queries, answers, seconds, starting float64
	latency := load.NewHistogram()
	for _, e := range edges {
		if kind == "warm" {
			if err := r.visitAll(ctx, starter, e); err != nil {
				return err
			}
		}
		if err := e.Stop(kind == "cold"); err != nil {
			return err
		}
		began := time.Now()
		if err := e.Start(ctx); err != nil {
			return err
		}
		starting += millis(time.Since(began).Nanoseconds())
		result, err := load.Open(ctx, r.target(starter, e), r.cfg.Rate, r.cfg.Round)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		r.check(fmt.Sprintf("redirects due but not sent, %s: %s", kind, e.Name), 0, result.Unsent)
		for metric, sum := range map[string]*float64{"linkstream_edge_cache_misses_total": &misses, "linkstream_edge_link_queries_total": &queries} {
			value, err := system.ReadMetric(ctx, e.Ops, metric)
			if err != nil {
				return err
			}
			*sum += value
		}
		answers += float64(result.Answers)
		seconds += result.Elapsed.Seconds()
		latency.Merge(result.Latency)
	}
	r.addRestart(kind, misses/max(1, answers), queries/seconds, starting/float64(len(edges)), latency)
	return nil
}

func (r *run) addRestart(kind string, lookups, queries, starting float64, latency *hdrhistogram.Histogram) {
	r.report.Add("look-ups per redirect after a restart: "+kind, "", report.Lower, lookups)
	r.report.Add("store queries per second after a restart: "+kind, "1/s", report.Lower, queries)
	r.report.Add("time to start: "+kind, "ms", report.Lower, starting)
	r.report.Add("redirect latency p99 after a restart: "+kind, "ms", report.Lower, millis(latency.ValueAtPercentile(99)))
}

// target returns the load on an edge, which begins with a visit to each link.
func (r *run) target(starter *contender.Starter, e *contender.Edge) load.Target {
	return starter.Load.Server(e.Name, e.Addr, starter.Visits.Uncounted(e.Addr)).Target
}

// visitAll visits every link once.
func (r *run) visitAll(ctx context.Context, starter *contender.Starter, e *contender.Edge) error {
	target := r.target(starter, e)
	for visited := int64(0); visited < int64(r.cfg.Links); {
		result, err := load.Closed(ctx, target, r.cfg.Round)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		visited += result.Answers
	}
	return nil
}

package scenario

import (
	"context"
	"fmt"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const (
	coldLinks    = 200_000 // unless -links says otherwise
	minColdLinks = 50_000  // the cache holds less than a tenth of the links
	coldCache    = 1 << 20
	coldRate     = 5000 // redirects per second in the open loop, unless -rates says otherwise
)

// runCold measures redirects of links that are not in the cache of the edge, which has its minimum size, compared with
// bare look-ups.
func runCold(ctx context.Context, r *run) error {
	r.cfg.unlessSet("links", func() { r.cfg.Links = coldLinks })
	r.cfg.Links = max(r.cfg.Links, minColdLinks)
	if len(r.cfg.Rates) == 0 {
		r.cfg.Rates = []float64{coldRate}
	}
	r.logf("starting an edge and a link store of its own: a running service is not measured")
	on, err := r.startEngines(ctx)
	if err != nil {
		return err
	}
	visits := r.visits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	visits.Uniform = true
	r.logf("creating %d links", r.cfg.Links)
	if _, err := system.CreateLinks(ctx, on, visits.Links); err != nil {
		return err
	}
	lookup, err := on.BareLinkLookup(ctx, visits.Links)
	if err != nil {
		return err
	}
	edge, recorded, err := r.starter(on, visits).SpoolingEdge(ctx, "-edge.cache-bytes", fmt.Sprint(coldCache),
		"-edge.lookup-timeout", "10s")
	if err != nil {
		return err
	}
	if err := r.closedLoop(ctx, "cold redirect", []*contender.Contender{contender.LinkCalls(lookup), edge}); err != nil {
		return err
	}
	if err := r.addLookups(ctx, recorded); err != nil {
		return err
	}
	if err := r.openLoop(ctx, "cold redirect", []*contender.Contender{edge}); err != nil {
		return err
	}
	return r.checkCounters(ctx, recorded)
}

// addLookups adds the cache misses per redirect of an edge, and the look-ups per query.
func (r *run) addLookups(ctx context.Context, edge *system.Counter) error {
	var values [2]float64
	for i, metric := range []string{"linkstream_edge_cache_misses_total", "linkstream_edge_link_queries_total"} {
		var err error
		if values[i], err = system.ReadMetric(ctx, edge.Base, metric); err != nil {
			return err
		}
	}
	misses, queries := values[0], values[1]
	r.Add("look-ups per redirect, closed loop", edge.Name, "", misses/float64(max(1, edge.Want)))
	r.Add("look-ups per query, closed loop", edge.Name, "", misses/max(1, queries))
	return nil
}

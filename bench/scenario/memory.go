package scenario

import (
	"context"
	"fmt"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// cachedLinkBytes is an upper bound of what a link takes of the edge's cache.
const cachedLinkBytes = 340

// runMemory measures the resident memory of an edge that has all links in its cache, and the cost of a redirect then.
func runMemory(ctx context.Context, r *run) error {
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
	edge, shipped, err := r.starter(on, visits).ShippingEdge(ctx, "-edge.cache-ttl", "1h", "-edge.lookup-timeout", "10s",
		"-edge.cache-bytes", fmt.Sprint(max(64<<20, r.cfg.Links*cachedLinkBytes)))
	if err != nil {
		return err
	}
	for visited := int64(0); visited < int64(r.cfg.Links); {
		result, err := load.Closed(ctx, edge.Target, r.cfg.Round)
		if err != nil {
			return err
		}
		visited += result.Answers
		shipped.Want += result.Answers
		r.logf("visited %d links", min(visited, int64(r.cfg.Links)))
	}
	if err := r.closedLoop(ctx, "redirect", []*contender.Contender{edge}); err != nil {
		return err
	}
	missed, err := system.ReadMetric(ctx, shipped.Base, "linkstream_edge_cache_misses_total")
	if err != nil {
		return err
	}
	// 1 if the cache holds all links.
	r.report.Add("look-ups per link", "", report.Lower, missed/float64(r.cfg.Links))
	return r.checkCounter(ctx, shipped)
}

package main

import (
	"context"
	"fmt"

	"linkstream/bench/load"
	"linkstream/bench/report"
)

// cachedLink is more than a link may take of the edge's cache, in bytes.
const cachedLink = 340

// runMemory measures what an edge has resident once all links are in its cache, and what a redirect costs then.
func runMemory(ctx context.Context, b *bench) error {
	on, err := b.startEngines(ctx)
	if err != nil {
		return err
	}
	crowd := newCrowd(newLinkSet(b.cfg.Links), b.cfg.Links)
	crowd.primed = b.cfg.Links
	b.say("making %d links", b.cfg.Links)
	if _, err := seed(ctx, on, crowd.links, ownTokens); err != nil {
		return err
	}
	brokerAddr, broker, err := brokerAlone(ctx, on)
	if err != nil {
		return err
	}
	edge, shipped, err := b.edge(ctx, on, edgeShipping, brokerAddr, "linkstream_edge_clicks_shipped_total", crowd,
		"-edge.cache-ttl", "1h", "-edge.lookup-timeout", "10s", "-edge.cache-bytes", fmt.Sprint(max(64<<20, b.cfg.Links*cachedLink)))
	if err != nil {
		return err
	}
	edge.processes = append(edge.processes, broker...)
	for visited := int64(0); visited < int64(b.cfg.Links); {
		result, err := load.Closed(ctx, edge.target, b.cfg.Round)
		if err != nil {
			return err
		}
		visited += result.Answers
		shipped.want += result.Answers
		b.say("visited %d links", min(visited, int64(b.cfg.Links)))
	}
	if err := b.rounds(ctx, "redirect", []*subject{edge}); err != nil {
		return err
	}
	missed, err := readMetric(ctx, shipped.base, "linkstream_edge_cache_misses_total")
	if err != nil {
		return err
	}
	b.report.Add("look-ups for each link", "", report.Lower, missed/float64(b.cfg.Links)) // 1 if all have room
	return b.checkCounter(ctx, shipped)
}

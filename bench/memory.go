package main

import (
	"context"
	"os"
	"path/filepath"

	"linkstream/bench/load"
	"linkstream/bench/report"
)

// runMemory measures what an edge has resident once all links are in its cache, and what a redirect costs then.
func runMemory(ctx context.Context, b *bench) error {
	data := filepath.Join(b.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	crowd := newCrowd(newLinkSet(b.cfg.Links), b.cfg.Links)
	crowd.primed = b.cfg.Links
	b.say("making %d links", b.cfg.Links)
	if _, err := seed(ctx, data, crowd.links, ownTokens); err != nil {
		return err
	}
	broker, brokerAddr, err := b.broker(ctx)
	if err != nil {
		return err
	}
	edge, shipped, err := b.edge(ctx, edgeShipping, brokerAddr, "linkstream_edge_clicks_shipped_total", crowd,
		"-edge.cache-ttl", "1h", "-edge.lookup-timeout", "10s")
	if err != nil {
		return err
	}
	edge.processes = append(edge.processes, process{"broker", broker.Usage})
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
	b.report.Checks = append(b.report.Checks, report.Check{
		Name: "links that were looked up, each of them once", Want: int64(b.cfg.Links), Got: int64(missed)})
	return b.checkCounter(ctx, shipped)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"linkstream/bench/load"
)

// callEvery is how often the API is called beside the visits, by one client who does everything in turn.
const callEvery = 100 * time.Millisecond

// runSoak has visitors come at a fixed rate for the whole duration while links are made, listed and asked for their
// statistics, and looks at what grows: memory, the spool, the lag. At the end each click must have been counted.
func runSoak(ctx context.Context, b *bench) error {
	crowd := newCrowd(newLinkSet(b.cfg.Links), b.cfg.Links)
	service, err := b.open(ctx, crowd.links)
	if err != nil {
		return err
	}
	whole := b.visitedService(service, crowd)
	if b.cfg.Start {
		b.watchBacklog(ctx, service)
	}
	if err := b.rounds(ctx, "redirect", []*subject{whole}); err != nil {
		return err
	}
	calling, stop := context.WithCancel(ctx)
	defer stop()
	var caller sync.WaitGroup
	var calls error
	caller.Go(func() { calls = b.callAll(ctx, calling.Done(), service.api, crowd.links) })
	err = b.openLoop(ctx, "redirect", []*subject{whole})
	stop()
	caller.Wait()
	if err := errors.Join(err, calls); err != nil {
		return err
	}
	return b.verify(ctx, service, crowd)
}

// watchBacklog adds what waits between the redirect and the store to the charts over time.
func (b *bench) watchBacklog(ctx context.Context, s *runningService) {
	for name, at := range map[string]struct{ base, metric string }{
		"in the spool": {"http://" + s.edge, "linkstream_edge_spool_pending_clicks"},
		"in the topic": {s.counted.base, "linkstream_ingest_lag_records"},
	} {
		b.recorder.Gauge("clicks that wait", name, "clicks", func() (float64, bool) {
			n, err := readMetric(ctx, at.base, at.metric)
			return n, err == nil
		})
	}
}

// callAll calls the API until stop is closed.
func (b *bench) callAll(ctx context.Context, stop <-chan struct{}, api *api, links linkSet) error {
	random := rand.New(rand.NewPCG(crowdSeed, 1))
	popularity := load.NewPopularity(links.count, crowdSeed)
	made := newLinkSet(maxLinks) // with a prefix of their own
	tick := time.NewTicker(callEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
		var err error
		switch n % 3 {
		case 0:
			err = api.shorten(ctx, made.hash(n), made.url(n))
		case 1:
			_, err = api.links(ctx, 1+random.IntN(1+links.count/20))
		case 2:
			_, err = api.clicks(ctx, links.hash(popularity.Next()))
		}
		if err != nil {
			return fmt.Errorf("call the API beside the load: %w", err)
		}
	}
}

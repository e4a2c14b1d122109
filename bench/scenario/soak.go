package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const soak = "soak"

// callInterval is the time between API calls beside the visits.
const callInterval = 100 * time.Millisecond

// runSoak visits links at a fixed rate for -duration, while one client creates links, lists them and reads statistics.
// It records what may grow: memory, the spool and the lag.
func runSoak(ctx context.Context, r *run) error {
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	service, err := r.open(ctx, visits.Links)
	if err != nil {
		return err
	}
	whole := []*contender.Contender{contender.Visited(service, visits, r.load(visits.Reconnect))}
	if r.cfg.System.Start {
		r.watchBacklog(ctx, service)
	}
	if err := r.closedLoop(ctx, "redirect", whole); err != nil {
		return err
	}
	calling, stop := context.WithCancel(ctx)
	defer stop()
	var caller sync.WaitGroup
	var failed error
	caller.Go(func() { failed = callAPI(ctx, calling.Done(), service.API, visits.Links) })
	err = r.openLoop(ctx, "redirect", whole)
	stop()
	caller.Wait()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return r.verify(ctx, service, visits)
}

// watchBacklog adds the clicks between the redirect and the store to the charts over time.
func (r *run) watchBacklog(ctx context.Context, s *system.Service) {
	for _, stage := range []struct{ name, base, metric string }{
		{"in the spool", s.EdgeOperators(), "linkstream_edge_spool_pending_clicks"},
		{"in the topic", s.Counted.Base, "linkstream_ingest_lag_records"},
	} {
		r.recorder.Gauge("pending clicks", stage.name, "clicks", func() (float64, bool) {
			n, err := system.ReadMetric(ctx, stage.base, stage.metric)
			return n, err == nil
		})
	}
}

// callAPI calls the API until stop is closed.
func callAPI(ctx context.Context, stop <-chan struct{}, api *system.API, links workload.Links) error {
	random, popularity := workload.Random(1), workload.Popularity(links.Count)
	created := workload.NewLinks(workload.MaxLinks) // with a prefix of their own
	tick := time.NewTicker(callInterval)
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
			err = api.Shorten(ctx, created.Hash(n), created.URL(n))
		case 1:
			_, err = api.Links(ctx, 1+random.IntN(1+links.Count/20))
		case 2:
			_, err = api.Clicks(ctx, links.Hash(popularity.Next()))
		}
		if err != nil {
			return fmt.Errorf("call the API beside the load: %w", err)
		}
	}
}

package scenario

import (
	"context"
	"runtime"
	"slices"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// runRedirect measures redirects on lasting connections, beside bare servers, and of as many links that have rules: they expire, and pass
// on the query string of a visit.
func runRedirect(ctx context.Context, r *run) error {
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	ruled := workload.NewLinks(r.cfg.Links)
	ruled.Ruled = true
	service, err := r.openFilled(ctx, visits.Links, func(ctx context.Context, on system.Engines) error {
		_, err := system.CreateCatalogue(ctx, on, int64(r.cfg.Links)+1, ruled)
		return err
	})
	if err != nil {
		return err
	}
	return r.measureRedirects(ctx, service, visits, ruled)
}

// runConnections measures redirects on new connections, one per redirect, beside bare servers.
func runConnections(ctx context.Context, r *run) error {
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	visits.Reconnect = true
	service, err := r.open(ctx, visits.Links)
	if err != nil {
		return err
	}
	if err := r.measureRedirects(ctx, service, visits); err != nil || !r.cfg.System.Start {
		return err
	}
	return r.measureSecure(ctx, service.Engines, visits.Links)
}

// measureRedirects measures the whole service and, if the run has started it, the edge alone, also with the links of ruled, and bare
// servers.
func (r *run) measureRedirects(ctx context.Context, service *system.Service, visits *workload.Visits, ruled ...workload.Links) error {
	var err error
	whole := contender.Visited(service, visits, r.load(visits.Reconnect))
	contenders, open := []*contender.Contender{whole}, []*contender.Contender{whole}
	var counters []*system.Counter
	if r.cfg.System.Start {
		starter := r.starter(service.Engines, visits)
		if contenders, err = bareServers(ctx, starter); err != nil {
			return err
		}
		spooling, recorded, err := starter.SpoolingEdge(ctx)
		if err != nil {
			return err
		}
		contenders, counters = append(contenders, spooling), append(counters, recorded)
		for _, links := range ruled {
			spooling.Reference = true
			edge, recorded, err := starter.RuledEdge(ctx, links)
			if err != nil {
				return err
			}
			contenders, counters = append(contenders, edge), append(counters, recorded)
		}
		shipping, shipped, err := starter.ShippingEdge(ctx)
		if err != nil {
			return err
		}
		// The latency of the bare server is the part that the machine has in every latency.
		open = []*contender.Contender{contenders[0], shipping, whole}
		contenders, counters = append(contenders, shipping, whole), append(counters, shipped)
	}
	if err := r.closedLoop(ctx, "redirect", contenders); err != nil {
		return err
	}
	if err := r.openLoop(ctx, "redirect", open); err != nil {
		return err
	}
	for _, c := range counters {
		if err := r.checkCounter(ctx, c); err != nil {
			return err
		}
	}
	return r.verify(ctx, service, visits)
}

// bareServers starts the servers that redirect and do nothing else. All contenders are compared with the first one, and
// with an nginx that has as many workers as an edge has threads.
func bareServers(ctx context.Context, starter *contender.Starter) (servers []*contender.Contender, err error) {
	for _, name := range []string{contender.BareNet, contender.BareEdge} {
		bare, err := starter.Bare(ctx, name)
		if err != nil {
			return nil, err
		}
		servers = append(servers, bare)
	}
	for _, workers := range slices.Compact([]int{1, runtime.NumCPU()}) {
		nginx, err := starter.Nginx(ctx, workers)
		if err != nil {
			return nil, err
		}
		if nginx == nil {
			return servers, nil
		}
		nginx.Reference = workers == runtime.NumCPU()
		servers = append(servers, nginx)
	}
	return servers, nil
}

package scenario

import (
	"context"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// runRedirect measures the redirects of the edge on lasting connections, beside bare servers.
func runRedirect(ctx context.Context, r *run) error {
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	service, err := r.open(ctx, visits.Links)
	if err != nil {
		return err
	}
	whole := contender.Visited(service, visits, r.cfg.Conns)
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
		shipping, shipped, err := starter.ShippingEdge(ctx)
		if err != nil {
			return err
		}
		// The latency of the bare server is the part that the machine has in every latency.
		open = []*contender.Contender{contenders[0], shipping, whole}
		contenders, counters = append(contenders, spooling, shipping, whole), []*system.Counter{recorded, shipped}
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

// bareServers starts the servers that redirect and do nothing else. The first is the one that all are compared with.
func bareServers(ctx context.Context, starter *contender.Starter) (servers []*contender.Contender, err error) {
	for _, name := range []string{contender.BareNet, contender.BareEdge} {
		bare, err := starter.Bare(ctx, name)
		if err != nil {
			return nil, err
		}
		servers = append(servers, bare)
	}
	nginx, err := starter.Nginx(ctx)
	if nginx != nil {
		servers = append(servers, nginx)
	}
	return servers, err
}

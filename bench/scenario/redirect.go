package scenario

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// runRedirect measures redirects on lasting connections.
func runRedirect(ctx context.Context, r *run) error {
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	links := min(r.cfg.Links, ruledLinks)
	ruled, limited := workload.NewVisits(workload.NewLinks(links), links),
		workload.NewVisits(workload.NewLinks(1), 1).WithoutBots()
	service, err := r.open(ctx, visits.Links, func(ctx context.Context, on system.Engines) error {
		return errors.Join(system.CreateExtendedLinks(ctx, on, "rules", ruled.Links, system.Rules),
			system.CreateExtendedLinks(ctx, on, "limit", limited.Links, system.Limit))
	})
	if err != nil {
		return err
	}
	return r.measureRedirects(ctx, service, visits, extended{"rules", ruled}, extended{"a limit", limited})
}

// ruledLinks bounds the links with rules, which are created one at a time.
const ruledLinks = 1000

// extended are visits to links that have what the name says.
type extended struct {
	name   string
	visits *workload.Visits
}

// runConnections measures redirects on new connections, one per redirect, and by HTTPS.
func runConnections(ctx context.Context, r *run) error {
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	visits.Reconnect = true
	service, err := r.open(ctx, visits.Links, nil)
	if err != nil {
		return err
	}
	if err := r.measureRedirects(ctx, service, visits); err != nil || !r.cfg.System.Start {
		return err
	}
	return r.measureSecure(ctx, service.Engines, visits.Links)
}

// measureRedirects measures the whole service and peers and, if the run has started the service, bare servers and the
// edge alone, also with links that have behaviours.
func (r *run) measureRedirects(ctx context.Context, service *system.Service, visits *workload.Visits,
	with ...extended) error {
	whole := contender.Visited(service, visits, r.load(visits.Reconnect))
	starter := r.starter(service.Engines, visits)
	peers, err := r.peers(starter, false)
	if err != nil {
		return err
	}
	contenders, open := append(peers, whole), []*contender.Contender{whole}
	var counters []*system.Counter
	if r.cfg.System.Start {
		servers, err := bareServers(ctx, starter)
		if err != nil {
			return err
		}
		spooling, recorded, err := starter.SpoolingEdge(ctx)
		if err != nil {
			return err
		}
		// The latency of the bare server is the part that the machine has in every latency.
		contenders, counters, open = slices.Concat(servers, peers), append(counters, recorded),
			append(servers[:1:1], peers...)
		contenders, open = append(contenders, spooling), append(open, spooling)
		for _, x := range with {
			edge, recorded, err := r.starter(service.Engines, x.visits).ExtendedEdge(ctx, x.name)
			if err != nil {
				return err
			}
			contenders, counters = append(contenders, edge), append(counters, recorded)
		}
		if service.Engines.Broker() != nil {
			shipping, shipped, err := starter.ShippingEdge(ctx)
			if err != nil {
				return err
			}
			contenders, counters, open = append(contenders, shipping), append(counters, shipped), append(open, shipping)
		}
		contenders, open = append(contenders, whole), append(open, whole)
	}
	if err := r.closedLoop(ctx, "redirect", contenders); err != nil {
		return err
	}
	if err := r.openLoop(ctx, "redirect", open); err != nil {
		return err
	}
	if err := r.checkCounters(ctx, counters...); err != nil {
		return err
	}
	return r.verify(ctx, service, visits)
}

// bareServers starts the servers that redirect and do nothing else. All contenders are compared with the first one, and
// with an nginx that has as many workers as an edge has threads.
func bareServers(ctx context.Context, starter *contender.Starter) ([]*contender.Contender, error) {
	bare, err := starter.Bare(ctx, nil)
	if err != nil {
		return nil, err
	}
	nginx, err := starter.Nginx(ctx, runtime.NumCPU(), nil)
	if err != nil || nginx == nil {
		return []*contender.Contender{bare}, err
	}
	nginx.Reference = true
	return []*contender.Contender{bare, nginx}, nil
}

// peers returns the configured programs that serve HTTPS, or the ones that serve HTTP.
func (r *run) peers(starter *contender.Starter, secure bool) (all []*contender.Contender, err error) {
	for _, p := range r.cfg.Peers {
		if p.Secure() != secure {
			continue
		}
		c, err := starter.Peer(p)
		if err != nil {
			return nil, err
		}
		c.Reference = true
		all = append(all, c)
	}
	return all, nil
}

// secureLoads are the kinds of visits by HTTPS.
var secureLoads = []struct {
	name              string
	reconnect, resume bool
}{
	{"full TLS handshake", true, false},
	{"resumed TLS session", true, true},
	{"lasting TLS connection", false, false},
}

// measureSecure measures redirects by HTTPS: TLS 1.3, X25519, an ECDSA certificate on P-256.
func (r *run) measureSecure(ctx context.Context, on system.Engines, links workload.Links) error {
	cert, err := system.NewCertificate(r.group)
	if err != nil {
		return err
	}
	starter := r.starter(on, workload.NewVisits(links, r.cfg.Links))
	starter.Load.TLS = true
	servers, recorded, err := starter.SecureServers(ctx, cert)
	if err != nil {
		return err
	}
	peers, err := r.peers(starter, true)
	if err != nil {
		return err
	}
	servers = slices.Insert(servers, len(servers)-1, peers...)
	for _, kind := range secureLoads {
		starter.Visits = workload.NewVisits(links, r.cfg.Links)
		starter.Visits.Reconnect = kind.reconnect
		starter.Load.Reconnect, starter.Load.Resume = kind.reconnect, kind.resume
		var contenders []*contender.Contender
		for _, server := range servers {
			contenders = append(contenders, starter.Again(server, kind.name))
		}
		if err := r.closedLoop(ctx, "HTTPS redirect", contenders); err != nil {
			return err
		}
	}
	return r.checkCounters(ctx, recorded)
}

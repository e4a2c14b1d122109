package scenario

import (
	"context"
	"runtime"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// secureLoads are the ways in which visitors come by HTTPS.
var secureLoads = []struct {
	name              string
	reconnect, resume bool
}{
	{"full TLS handshake", true, false},
	{"resumed TLS session", true, true},
	{"lasting TLS connection", false, false},
}

// measureSecure measures redirects by HTTPS (TLS 1.3, X25519, an ECDSA certificate on P-256): of an edge beside a bare server on
// crypto/tls, and an nginx with as many workers as an edge has threads.
func (r *run) measureSecure(ctx context.Context, on system.Engines, links workload.Links) error {
	cert, err := system.NewCertificate(r.group)
	if err != nil {
		return err
	}
	servers, recorded, err := r.starter(on, workload.NewVisits(links, r.cfg.Links)).SecuredServers(ctx, cert, runtime.NumCPU())
	if err != nil {
		return err
	}
	for _, way := range secureLoads {
		visits := workload.NewVisits(links, r.cfg.Links)
		visits.Reconnect = way.reconnect
		l := r.load(way.reconnect)
		l.Resume = way.resume
		var contenders []*contender.Contender
		for _, server := range servers {
			contenders = append(contenders, server.Contender(way.name, visits, l))
		}
		if err := r.closedLoop(ctx, "redirect", contenders); err != nil {
			return err
		}
	}
	return r.checkCounter(ctx, recorded)
}

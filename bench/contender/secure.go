package contender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/valyala/fasthttp"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema/service"
)

const bareTLSRole = "serve-bare-tls"

// serveBareTLS is a bare server on package net and crypto/tls, with the certificate that args name.
func serveBareTLS(ctx context.Context, listener net.Listener, handler *bareHandler, args []string) error {
	if len(args) != 2 {
		return errors.New(bareTLSRole + ": name a certificate and its key")
	}
	cert, err := tls.LoadX509KeyPair(args[0], args[1])
	if err != nil {
		return err
	}
	server := &fasthttp.Server{Handler: handler.Serve, NoDefaultServerHeader: true, NoDefaultContentType: true}
	secured := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{cert}}) // as fasthttp's ServeTLS does
	return service.Serve(ctx, server, secured, stopGrace)
}

// Secured is a server of HTTPS. All of them have the same certificate.
type Secured struct {
	name, addr string
	source     func(*workload.Visits) func(conn int) load.Source
	process    proc.Process
	settle     func(ctx context.Context, operations int64) error
	reference  bool
}

// Contender returns the server under a load by HTTPS.
func (s *Secured) Contender(kind string, visits *workload.Visits, l Load) *Contender {
	l.TLS = true
	process := s.process
	c := l.Server(fmt.Sprintf("%s, %s", s.name, kind), s.addr, s.source(visits), process)
	c.Settle, c.Reference = s.settle, s.reference
	return c
}

// SecuredServers starts a bare server, nginx if that is installed, and an edge that records its clicks, whose counter is the second
// result.
func (s *Starter) SecuredServers(ctx context.Context, cert system.Certificate, workers int) ([]*Secured, *system.Counter, error) {
	child, addr, err := s.Group.StartSelf(ctx, "bare fasthttp, TLS", bareTLSRole, cert.Cert, cert.Key)
	if err != nil {
		return nil, nil, err
	}
	bare := func(addr string) func(*workload.Visits) func(int) load.Source {
		return func(v *workload.Visits) func(int) load.Source { return v.Bare(addr) }
	}
	servers := []*Secured{{name: BareNet, addr: addr, source: bare(addr), process: proc.Process{Name: BareNet, Usage: child.Usage}}}
	nginx, err := s.nginx(ctx, workers, &cert)
	if err != nil {
		return nil, nil, err
	}
	if nginx != nil {
		servers = append(servers, &Secured{name: nginx.Name, addr: nginx.Target.Addr, source: bare(nginx.Target.Addr),
			process: nginx.Processes[0], reference: true})
	}
	addrs, err := system.FreeAddrs(1)
	if err != nil {
		return nil, nil, err
	}
	edge, recorded, err := s.spoolingEdge(ctx, spoolingName+", TLS", cert.Flags(addrs[0])...)
	if err != nil {
		return nil, nil, err
	}
	host := edge.Target.Addr
	servers = append(servers, &Secured{name: spoolingName, addr: addrs[0], process: edge.Processes[0], settle: edge.Settle,
		source: func(v *workload.Visits) func(int) load.Source { return v.Uncounted(host) }})
	return servers, recorded, nil
}

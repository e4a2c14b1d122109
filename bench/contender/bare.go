package contender

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema/service"
)

// Bare is the name of the server with which every other contender of a redirect is compared.
const Bare = "bare fasthttp"

const (
	bareRole  = "serve-bare"
	stopGrace = time.Second // for the requests under way when a server stops
)

// Starter starts the servers that answer redirects.
type Starter struct {
	Group    *proc.Group
	Engines  system.Engines
	Visits   *workload.Visits
	Load     Load
	Progress func(format string, args ...any)
}

// Roles returns the bare servers that run in processes of their own.
func Roles() []proc.Role { return []proc.Role{{Name: bareRole, Run: serveBare}} }

// serveBare answers every request with the status and the headers of an edge's redirect, and does nothing else. With
// the files of a certificate and its key as arguments, it serves HTTPS by crypto/tls.
func serveBare(ctx context.Context, args []string, stdout, _ io.Writer) error {
	listener, err := service.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, listener.Addr())
	if len(args) == 2 {
		cert, err := tls.LoadX509KeyPair(args[0], args[1])
		if err != nil {
			return err
		}
		listener = net.Listener(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{cert}}))
	}
	location, cacheControl := []byte("Location"), []byte("Cache-Control")
	target, noStore := []byte(workload.BareURL), []byte("private, no-store")
	server := &fasthttp.Server{NoDefaultServerHeader: true, NoDefaultContentType: true,
		Handler: func(http *fasthttp.RequestCtx) {
			http.SetStatusCode(fasthttp.StatusFound)
			http.Response.Header.SetCanonical(location, target)
			http.Response.Header.SetCanonical(cacheControl, noStore)
		}}
	return service.Serve(ctx, server, listener, stopGrace)
}

// Bare starts the bare server. With a certificate it serves HTTPS.
func (s *Starter) Bare(ctx context.Context, cert *system.Certificate) (*Contender, error) {
	name, args := Bare, []string{bareRole}
	if cert != nil {
		name, args = name+", TLS", append(args, cert.Cert, cert.Key)
	}
	child, addr, err := s.Group.StartSelf(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	return s.redirects(Bare, addr, bare(addr), proc.Process{Name: Bare, Usage: child.Usage}), nil
}

// bare returns the visits to a server that always redirects to workload.BareURL.
func bare(addr string) func(*workload.Visits) Source {
	return func(v *workload.Visits) Source { return v.Bare(addr) }
}

// redirects returns a server under the starter's load.
func (s *Starter) redirects(name, addr string, sources func(*workload.Visits) Source,
	processes ...proc.Process) *Contender {
	c := s.Load.Server(name, addr, sources(s.Visits), processes...)
	c.Sources = sources
	return c
}

// Again returns the same server under other visits.
func (s *Starter) Again(c *Contender, kind string) *Contender {
	again := s.redirects(c.Name+", "+kind, c.Target.Addr, c.Sources, c.Processes...)
	again.Drain, again.Reference = c.Drain, c.Reference
	return again
}

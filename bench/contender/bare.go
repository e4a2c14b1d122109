package contender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/bench/proc"
	"linkstream/bench/workload"
	"linkstream/edge/deadline"
	"linkstream/schema/service"
)

// The names of the bare servers. The first is what every other contender of a redirect is compared with.
const (
	BareNet  = "bare fasthttp"
	BareEdge = "bare, on edge/socket"
)

const (
	bareRole  = "serve-bare"
	stopGrace = time.Second // for the requests under way when a server stops
)

// Roles returns the bare servers that run in processes of their own.
func Roles() []proc.Role { return []proc.Role{{Name: bareRole, Run: serveBare}} }

// serveOn serves on the connection layer that belongs to a bare server.
func serveOn(ctx context.Context, name string, server *fasthttp.Server, listener net.Listener) error {
	limits := deadline.Limits{Read: 5 * time.Second, Write: 5 * time.Second, Idle: 75 * time.Second} // as an edge's
	switch name {
	case BareNet:
		return service.Serve(ctx, server, listener, stopGrace)
	case BareEdge:
		return service.Serve(ctx, server, deadline.NewListener(listener, limits), stopGrace)
	default:
		return fmt.Errorf("%s: there is no connection layer %q", bareRole, name)
	}
}

// serveBare answers every request with the status and the headers of an edge's redirect, and does nothing else.
func serveBare(ctx context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return errors.New(bareRole + ": name the bare server")
	}
	listener, err := service.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	location, cacheControl := []byte("Location"), []byte("Cache-Control")
	target, privateNoStore := []byte(workload.BareURL), []byte("private, no-store")
	server := &fasthttp.Server{NoDefaultServerHeader: true, NoDefaultContentType: true}
	server.Handler = func(http *fasthttp.RequestCtx) {
		http.SetStatusCode(fasthttp.StatusFound)
		http.Response.Header.SetCanonical(location, target)
		http.Response.Header.SetCanonical(cacheControl, privateNoStore)
	}
	fmt.Fprintln(stdout, listener.Addr())
	return serveOn(ctx, args[0], server, listener)
}

// Bare starts a server that redirects every request and does nothing else: BareNet or BareEdge.
func (s *Starter) Bare(ctx context.Context, name string) (*Contender, error) {
	child, addr, err := s.Group.StartSelf(ctx, name, bareRole, name)
	if err != nil {
		return nil, err
	}
	return s.Load.Server(name, addr, s.Visits.Bare(addr), proc.Process{Name: name, Usage: child.Usage}), nil
}

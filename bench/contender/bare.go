package contender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/bench/proc"
	"linkstream/bench/workload"
	"linkstream/edge/eventloop"
	"linkstream/schema/service"
)

// The names of the bare servers. The first is what every other contender of a redirect is compared with.
const (
	BareNet  = "bare fasthttp"
	BareEdge = "bare, on edge/eventloop"
)

const (
	bareRole  = "serve-bare"
	stopGrace = time.Second // for the requests under way when a server stops
)

// Roles returns the bare servers that run in processes of their own.
func Roles() []proc.Role {
	return []proc.Role{{Name: bareRole, Run: serveBare}, {Name: bareTLSRole, Run: bareTLS}}
}

func bareTLS(ctx context.Context, args []string, stdout, _ io.Writer) error {
	listener, err := service.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, listener.Addr())
	return serveBareTLS(ctx, listener, newBareHandler(), args)
}

// bareHandler answers every request with the status and the headers of an edge's redirect, and does nothing else.
type bareHandler struct {
	location, cacheControl, target, privateNoStore []byte
	lines                                          []byte
}

func newBareHandler() *bareHandler {
	return &bareHandler{
		[]byte("Location"), []byte("Cache-Control"), []byte(workload.BareURL), []byte("private, no-store"),
		[]byte("Location: " + workload.BareURL + "\r\nCache-Control: private, no-store\r\n"),
	}
}

// Serve answers on package net.
func (b *bareHandler) Serve(http *fasthttp.RequestCtx) {
	http.SetStatusCode(fasthttp.StatusFound)
	http.Response.Header.SetCanonical(b.location, b.target)
	http.Response.Header.SetCanonical(b.cacheControl, b.privateNoStore)
}

// TryServe answers on an event loop.
func (b *bareHandler) TryServe(r *eventloop.Request) bool {
	r.SendHeader(fasthttp.StatusFound, b.lines)
	return true
}

// Reject answers what is not a request.
func (b *bareHandler) Reject(http *fasthttp.RequestCtx, _ error) {
	http.SetStatusCode(fasthttp.StatusBadRequest)
}

// serveBare is a bare server on the connection layer that belongs to its name.
func serveBare(ctx context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return errors.New(bareRole + ": name the bare server")
	}
	listener, err := service.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	handler := newBareHandler()
	fmt.Fprintln(stdout, listener.Addr())
	switch name := args[0]; name {
	case BareNet:
		server := &fasthttp.Server{Handler: handler.Serve, NoDefaultServerHeader: true, NoDefaultContentType: true}
		return service.Serve(ctx, server, listener, stopGrace)
	case BareEdge:
		cfg := eventloop.DefaultConfig() // as an edge's
		cfg.ReserveCPUs()
		return eventloop.New(cfg, handler, metrics.NewSet(), slog.New(slog.DiscardHandler)).Serve(ctx, listener, stopGrace)
	default:
		return fmt.Errorf("%s: there is no connection layer %q", bareRole, name)
	}
}

// Bare starts a server that redirects every request and does nothing else: BareNet or BareEdge.
func (s *Starter) Bare(ctx context.Context, name string) (*Contender, error) {
	child, addr, err := s.Group.StartSelf(ctx, name, bareRole, name)
	if err != nil {
		return nil, err
	}
	return s.Load.Server(name, addr, s.Visits.Bare(addr), proc.Process{Name: name, Usage: child.Usage}), nil
}

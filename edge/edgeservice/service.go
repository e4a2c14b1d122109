// Package node is one edge process: the redirects, the spool they record clicks in, and the shipper that sends clicks on.
package edgeservice

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/edge/deadline"
	"linkstream/edge/redirect"
	"linkstream/edge/resolve"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

// stopGrace bounds how long requests under way may take once the node is to stop.
const stopGrace = 5 * time.Second

// Config is the configuration of an edge process.
type Config struct {
	Listen   string       // address that short links are served on
	Listener net.Listener // that is open already; nil: New listens at Listen
	Resolve  resolve.Config
	Redirect redirect.Config
	Spool    spool.Config
}

// DefaultConfig returns a configuration that works once Resolve.URL and Spool.Dir are set.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:8080", Resolve: resolve.DefaultConfig(), Redirect: redirect.DefaultConfig(),
		Spool: spool.DefaultConfig()}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Listen, "edge.listen", c.Listen, "`address` that short links are served on")
	c.Resolve.RegisterFlags(fs)
	c.Redirect.RegisterFlags(fs)
	c.Spool.RegisterFlags(fs)
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if err := service.CheckAddr(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("-edge.listen: %w", err))
	}
	return errors.Join(append(errs, c.Resolve.Validate(), c.Redirect.Validate(), c.Spool.Validate())...)
}

// Links is what an edge asks its link store.
type Links interface {
	schema.LinkStore
	schema.DomainStore
}

// Service is an edge process.
type Service struct {
	listener net.Listener
	server   *fasthttp.Server
	resolver *resolve.Resolver
	spool    *spool.Spool
	shipper  *spool.Shipper
	client   *stream.Client
	links    Links
}

// New opens the spool, listens, and returns a node that has yet to Run.
func New(cfg Config, links Links, client *stream.Client, log *slog.Logger) (*Service, error) {
	set := metrics.NewSet()
	resolver, err := resolve.New(cfg.Resolve, links, links, set, log)
	if err != nil {
		return nil, err
	}
	clicks, err := spool.Open(cfg.Spool, log)
	if err != nil {
		resolver.Close()
		return nil, err
	}
	listener, err := service.ListenUnlessOpen(cfg.Listener, cfg.Listen)
	if err != nil {
		resolver.Close()
		return nil, errors.Join(err, clicks.Close())
	}
	limits := deadline.Limits{Read: cfg.Redirect.ReadTimeout, Write: cfg.Redirect.WriteTimeout, Idle: cfg.Redirect.IdleTimeout}
	s := &Service{listener: deadline.NewListener(listener, limits), resolver: resolver, spool: clicks, links: links,
		client: client, shipper: spool.NewShipper(clicks, client, log)}
	clicks.RegisterMetrics(set)
	s.shipper.RegisterMetrics(set)
	handler := redirect.NewHandler(cfg.Redirect, resolver, clicks, &service.Endpoints{Ready: s.Ready, Metrics: set}, log)
	s.server = redirect.NewServer(cfg.Redirect, handler, log)
	return s, nil
}

// gcPercent is how much garbage a process may have beside what it keeps. An edge keeps a cache of hundreds of megabytes
// and makes next to no garbage, so that Go's default would set aside as much again for nothing. A miss, which allocates,
// costs a few microseconds more; it waits for the store anyway.
const gcPercent = 10

// BoundGarbage is for programs that are an edge and nothing else. What the environment says in GOGC comes first.
func BoundGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// Addr returns the address the node listens on.
func (s *Service) Addr() string { return s.listener.Addr().String() }

// Ready returns nil if the node can resolve links it has not seen and record clicks.
func (s *Service) Ready(ctx context.Context) error {
	if _, err := s.links.Link(ctx, 0, ""); err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
		return fmt.Errorf("link store: %w", err)
	}
	return s.spool.Ready()
}

// Run serves until ctx is done, then ships what it can.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shipping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var following, shipped sync.WaitGroup
	following.Go(func() { s.client.FollowChanges(ctx, s.resolver.Drop) })
	shipped.Go(func() { s.shipper.Run(shipping) })
	// 1. No redirect is answered any more, so no click is appended.
	err := service.Serve(ctx, s.server, s.listener, stopGrace)
	cancel()
	following.Wait()
	s.resolver.Close()
	// 2. Pending clicks go to the broker if it answers.
	stop()
	shipped.Wait()
	// 3. The others wait in the spool for the next process.
	return errors.Join(err, s.spool.Close())
}

// Package node is one ingest process: a worker, and what it shows its operator.
package ingestservice

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/ingest/enrich"
	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const (
	requestTimeout = 5 * time.Second
	stopGrace      = 5 * time.Second
)

// Config is the configuration of an ingest process.
type Config struct {
	Listen   string       // address of /healthz, /readyz and /metrics
	Listener net.Listener // that is open already; nil: New listens at Listen
	GeoIP    string       // path of a MaxMind file; "" if countries stay unknown
	Worker   worker.Config
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:8082", Worker: worker.DefaultConfig()} }

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Listen, "ingest.listen", c.Listen, "`address` of the ingest service's /healthz, /readyz and /metrics")
	fs.StringVar(&c.GeoIP, "ingest.geoip", c.GeoIP,
		"MaxMind `file` (.mmdb) of countries or cities, read again when it changes; without one countries stay unknown")
	c.Worker.RegisterFlags(fs)
}

// Validate returns every invalid setting, and reads the file of countries for it: a worker that waits for its engines
// first would tell of it too late.
func (c *Config) Validate() error {
	var errs []error
	if err := service.CheckAddr(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("-ingest.listen: %w", err))
	}
	if _, err := enrich.OpenCountries(c.GeoIP, slog.New(slog.DiscardHandler)); err != nil {
		errs = append(errs, fmt.Errorf("-ingest.geoip: %w", err))
	}
	return errors.Join(append(errs, c.Worker.Validate())...)
}

// Service is an ingest process.
type Service struct {
	listener  net.Listener
	countries *enrich.Countries
	worker    *worker.Worker
	server    *fasthttp.Server
}

// New reads the file of countries, listens, and returns a node that has yet to Run.
func New(cfg Config, clicks schema.ClickStore, client *stream.Client, log *slog.Logger) (*Service, error) {
	countries, err := enrich.OpenCountries(cfg.GeoIP, log)
	if err != nil {
		return nil, fmt.Errorf("-ingest.geoip: %w", err)
	}
	listener, err := service.ListenUnlessOpen(cfg.Listener, cfg.Listen)
	if err != nil {
		return nil, err
	}
	set := metrics.NewSet()
	s := &Service{listener: listener, countries: countries}
	s.worker = worker.New(cfg.Worker, client, clicks, countries, log, set)
	endpoints := service.Endpoints{Ready: s.Ready, Metrics: set}
	s.server = &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if !endpoints.Handle(ctx) {
				ctx.Error("not found\n", fasthttp.StatusNotFound)
			}
		},
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: time.Minute,
		NoDefaultServerHeader: true, Logger: service.ConnLogger(log),
	}
	return s, nil
}

// Addr returns the address the node listens on.
func (s *Service) Addr() string { return s.listener.Addr().String() }

// Ready returns nil if the node counts clicks.
func (s *Service) Ready(context.Context) error { return s.worker.Ready() }

// Run counts clicks until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- service.Serve(ctx, s.server, s.listener, stopGrace)
	}()
	var following sync.WaitGroup
	following.Go(func() { s.countries.Run(ctx) })
	err := s.worker.Run(ctx)
	cancel()
	following.Wait()
	return errors.Join(err, <-served)
}

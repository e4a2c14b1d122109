// Package ingestservice composes an ingest process: a worker that counts clicks, the countries it enriches them with, and
// the operator's endpoints.
package ingestservice

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
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
	stopGrace      = 5 * time.Second // for requests under way when the endpoints stop
)

// Config is the configuration of an ingest process.
type Config struct {
	Listen   string       // address of /healthz, /readyz and /metrics
	Listener net.Listener // used instead of Listen if it is not nil
	GeoIP    string       // path of a MaxMind database; "": countries stay unknown
	Worker   worker.Config
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:8082", Worker: worker.DefaultConfig()} }

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Listen, "ingest.listen", c.Listen, "`address` of the ingest service's /healthz, /readyz and /metrics")
	fs.StringVar(&c.GeoIP, "ingest.geoip", c.GeoIP,
		"MaxMind database `file` (.mmdb) of countries or cities, loaded again when it changes; without it countries are unknown")
	c.Worker.RegisterFlags(fs)
}

// Validate returns every invalid setting. It loads the countries too: New does so only after the engines answer, too late
// to report a wrong path.
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

// Service is an ingest process. It does not own the click store and the client: close them after Run.
type Service struct {
	listener  net.Listener
	countries *enrich.Countries
	worker    *worker.Worker
	server    *fasthttp.Server
}

// New loads the countries, listens, and returns a service that does nothing until Run.
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

// Addr returns the address of the endpoints.
func (s *Service) Addr() string { return s.listener.Addr().String() }

// Ready returns nil if the service counts clicks or stands by for other members of its consumer group.
func (s *Service) Ready(context.Context) error { return s.worker.Ready() }

// Run counts clicks until ctx is done or the endpoints fail. When it returns, no insert is under way: what was fetched is
// counted, or is fetched again by the next worker.
func (s *Service) Run(ctx context.Context) error {
	counting, stopCounting := context.WithCancel(ctx)
	defer stopCounting()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() {
		defer stopCounting()
		served <- service.Serve(serving, s.server, s.listener, stopGrace)
	}()
	stopReloading := service.RunInBackground(counting, s.countries.Run)
	// 1. The worker ends the batches under way: each is inserted as a whole or not at all. It commits only what is
	//    inserted, and then leaves the consumer group.
	err := s.worker.Run(counting)
	// 2. No click needs the countries any more.
	stopReloading()
	// 3. The endpoints have answered until now, not ready, so that operators see a slow stop.
	stopServing()
	return errors.Join(err, <-served)
}

// Package ingestservice composes an ingest process: a worker that counts clicks, and the countries it enriches them
// with.
package ingestservice

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

// Config is the configuration of an ingest process.
type Config struct {
	GeoIP  string // path of a MaxMind database; "": countries stay unknown
	Worker worker.Config
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config { return Config{Worker: worker.DefaultConfig()} }

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	registerGeoIP(fs, &c.GeoIP)
	c.Worker.RegisterFlags(fs)
}

func registerGeoIP(fs *flag.FlagSet, path *string) {
	fs.StringVar(path, "ingest.geoip", *path,
		"MaxMind database `file` (.mmdb) of countries or cities, loaded again when it changes; without it countries are "+
			"unknown")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error { return errors.Join(checkGeoIP(c.GeoIP), c.Worker.Validate()) }

// checkGeoIP loads the countries: New does so only after the engines answer, too late to report a wrong path.
func checkGeoIP(path string) error {
	if _, err := enrich.OpenCountries(path, slog.New(slog.DiscardHandler)); err != nil {
		return fmt.Errorf("-ingest.geoip: %w", err)
	}
	return nil
}

// Service is an ingest process. It does not own the click store and the client: close them after Run.
type Service struct {
	countries *enrich.Countries
	worker    *worker.Worker
	age       *ageWatch
	balance   *balanceWatch
	compactor *compactions // nil unless CompactDaily was called
	log       *slog.Logger
	metrics   *metrics.Set
}

// New loads the countries, and returns a service that does nothing until Run.
func New(cfg Config, clicks schema.PositionStore, client *stream.Client, log *slog.Logger) (*Service, error) {
	countries, err := enrich.OpenCountries(cfg.GeoIP, log)
	if err != nil {
		return nil, fmt.Errorf("-ingest.geoip: %w", err)
	}
	set := metrics.NewSet()
	return &Service{countries: countries, worker: worker.New(cfg.Worker, client, clicks, countries, log, set),
		age: newAgeWatch(client, clicks, log, set), balance: newBalanceWatch(clicks, log, set), log: log, metrics: set}, nil
}

// CompactDaily makes Run compact the old clicks of a store every day. Call it before Run.
func (s *Service) CompactDaily(store compacter) {
	s.compactor = newCompactions(store, s.log, s.metrics)
}

// Metrics returns the metrics of the worker.
func (s *Service) Metrics() *metrics.Set { return s.metrics }

// Ready returns nil if the service counts clicks or stands by for other members of its consumer group, and no click is
// about to be lost, or else a service.Unready.
func (s *Service) Ready(context.Context) error {
	if err := s.age.ready(); err != nil {
		return &service.Unready{What: "click log", Cause: err}
	}
	if err := s.worker.Ready(); err != nil {
		return &service.Unready{What: "click log or click store", Cause: err}
	}
	return nil
}

// Run counts clicks until ctx is done. When it returns, no insert is under way: each fetched record is counted, or will
// be fetched again by the next worker.
func (s *Service) Run(ctx context.Context) error {
	// 1. The worker ends the batches under way: each is inserted as a whole or not at all. It commits the positions of
	//    inserted batches only, and then leaves the consumer group.
	// 2. No click needs the countries any more.
	defer service.RunInBackground(context.WithoutCancel(ctx), s.countries.Run)()
	defer service.RunInBackground(ctx, s.age.run)()
	defer service.RunInBackground(ctx, s.balance.run)()
	if s.compactor != nil {
		defer service.RunInBackground(ctx, s.compactor.run)()
	}
	return s.worker.Run(ctx)
}

package ingestservice

import (
	"context"
	"flag"
	"fmt"
	"log/slog"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/service"
)

// LocalConfig is the configuration of a Local.
type LocalConfig struct {
	GeoIP string // as Config.GeoIP
}

// RegisterFlags binds the configuration to flags.
func (c *LocalConfig) RegisterFlags(fs *flag.FlagSet) { registerGeoIP(fs, &c.GeoIP) }

// Validate returns every invalid setting.
func (c *LocalConfig) Validate() error { return checkGeoIP(c.GeoIP) }

// LocalStore is a click store that counts lanes.
type LocalStore interface {
	count.LaneStore
	laneCounts
}

// Local counts the clicks of a spool in the same process: Writer is the topic that its shipper sends to.
type Local struct {
	Writer    *count.Writer
	countries *enrich.Countries
	balance   *balanceWatch
	metrics   *metrics.Set
}

// NewLocal loads the countries. It does not own the stores.
func NewLocal(cfg LocalConfig, clicks LocalStore, webhooks schema.ClickHookStore, log *slog.Logger) (*Local, error) {
	countries, err := enrich.OpenCountries(cfg.GeoIP, log)
	if err != nil {
		return nil, fmt.Errorf("-ingest.geoip: %w", err)
	}
	set := metrics.NewSet()
	return &Local{Writer: count.NewWriter(clicks, webhooks, countries, log, set), countries: countries,
		balance: newBalanceWatch(clicks, log, set), metrics: set}, nil
}

// Metrics returns the metrics of counting.
func (l *Local) Metrics() *metrics.Set { return l.metrics }

// Countries returns the countries of clicks, which Run keeps up to date.
func (l *Local) Countries() *enrich.Countries { return l.countries }

// Ready returns nil unless clicks cannot be counted, or else a service.Unready.
func (l *Local) Ready(context.Context) error {
	if err := l.Writer.Ready(); err != nil {
		return &service.Unready{What: "click store", Cause: err}
	}
	return nil
}

// Run does what counting needs in the background, until ctx is done. The Writer works without it.
func (l *Local) Run(ctx context.Context) {
	defer service.RunInBackground(ctx, l.balance.run)()
	l.countries.Run(ctx)
}

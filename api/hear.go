package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const (
	// hearingGroup is appended to the name of the consumer group of the ingest workers.
	hearingGroup = ".webhooks"
	// lookEvery is how often a process checks whether any webhook hears of clicks.
	lookEvery = time.Second
	// maxHeard bounds the clicks of a transaction, and with them the memory that each partition takes while a long log is read.
	maxHeard = 10_000
)

// hearingConfig is the configuration of a hearing.
type hearingConfig struct {
	geoIP string // path of a MaxMind database; "": countries stay unknown
}

// RegisterFlags binds the configuration to flags.
func (c *hearingConfig) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.geoIP, "api.geoip", c.geoIP,
		"MaxMind database `file` (.mmdb) by which webhooks hear the countries of clicks, loaded again when it changes")
}

// Validate returns every invalid setting.
func (c *hearingConfig) Validate() error {
	if _, err := enrich.OpenCountries(c.geoIP, slog.New(slog.DiscardHandler)); err != nil {
		return fmt.Errorf("-api.geoip: %w", err)
	}
	return nil
}

// hearing makes deliveries of clicks: its worker reads the topic of clicks as an ingest worker does, but as a member of a group of its own,
// and stores what webhooks hear in place of counts. It reads only while a webhook hears of clicks.
type hearing struct {
	db        schema.HearingStore
	countries *enrich.Countries
	client    *stream.Client
	worker    *worker.Worker
	log       *slog.Logger
}

// newHearing registers its metrics in set.
func newHearing(cfg settings, db schema.HearingStore, set *metrics.Set, log *slog.Logger) (*hearing, error) {
	countries, err := enrich.OpenCountries(cfg.hearing.geoIP, log)
	if err != nil {
		return nil, fmt.Errorf("-api.geoip: %w", err)
	}
	topics := cfg.topics
	topics.Group += hearingGroup
	client, err := stream.New(topics, log)
	if err != nil {
		return nil, err
	}
	bounds := worker.DefaultConfig()
	bounds.MaxBatch, bounds.Late = maxHeard, true
	h := &hearing{db: db, countries: countries, client: client, log: log}
	// The worker's own metrics count clicks that are stored, so they are not registered.
	h.worker = worker.New(bounds, clicksTopic{client}, heard{db}, countries, log.With("group", topics.Group), metrics.NewSet())
	const lag = "linkstream_api_webhook_lag_records"
	service.Describe(set, lag, "Clicks that wait to be put into deliveries to webhooks, in the partitions of this process.")
	set.NewGauge(lag, func() float64 { return float64(h.worker.Lag()) })
	return h, nil
}

// run runs until ctx is done.
func (h *hearing) run(ctx context.Context) {
	defer h.client.Close()
	defer service.RunInBackground(ctx, h.countries.Run)()
	stop := func() {}
	defer func() { stop() }()
	for reading, failing := false, false; ctx.Err() == nil; stream.Sleep(ctx, lookEvery) {
		accounts, err := h.db.HearingAccounts(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			h.log.Warn("cannot look for webhooks of clicks, retrying", "error", err)
		}
		if failing = err != nil; failing || reading == (len(accounts) > 0) {
			continue
		}
		stop()
		stop = func() {}
		if reading = !reading; reading {
			stop = service.RunInBackground(ctx, h.read)
		}
	}
}

func (h *hearing) read(ctx context.Context) {
	if err := h.worker.Run(ctx); err != nil && ctx.Err() == nil {
		h.log.Error("webhooks hear of no more clicks", "error", err)
	}
}

// clicksTopic is the topic of clicks for a worker that does not count: ingest moves the dead letters.
type clicksTopic struct{ *stream.Client }

func (clicksTopic) ProduceDead(context.Context, *stream.Batch) error { return nil }

// heard is a HearingStore as a worker sees it.
type heard struct{ schema.HearingStore }

func (h heard) Position(ctx context.Context, partition int) (schema.Position, error) {
	return h.HeardPosition(ctx, partition)
}

func (h heard) LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	return h.HeardMarks(ctx, lanes)
}

func (h heard) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	return h.HearClicks(ctx, batch)
}

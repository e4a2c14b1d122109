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
	// webhookGroup is appended to the name of the consumer group of the ingest workers.
	webhookGroup = ".webhooks"
	// lookEvery is how often a process checks whether any webhook subscribes to clicks.
	lookEvery = time.Second
	// maxQueued bounds the clicks of a transaction, and with them the memory that each partition takes while a long log is
	// read.
	maxQueued = 10_000
)

// clickHookConfig is the configuration of a clickQueue.
type clickHookConfig struct {
	geoIP string // path of a MaxMind database; "": countries stay unknown
}

// RegisterFlags binds the configuration to flags.
func (c *clickHookConfig) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.geoIP, "api.geoip", c.geoIP,
		"MaxMind database `file` (.mmdb) for the countries of clicks in webhooks, loaded again when it changes")
}

// Validate returns every invalid setting.
func (c *clickHookConfig) Validate() error {
	if _, err := enrich.OpenCountries(c.geoIP, slog.New(slog.DiscardHandler)); err != nil {
		return fmt.Errorf("-api.geoip: %w", err)
	}
	return nil
}

// clickQueue makes deliveries of clicks: its worker reads the topic of clicks like an ingest worker, but as a member of
// a group of its own, and stores clicks for webhooks in place of counts. It reads only while a webhook subscribes to
// clicks.
type clickQueue struct {
	db        schema.ClickHookStore
	countries *enrich.Countries
	client    *stream.Client
	worker    *worker.Worker
	log       *slog.Logger
}

// newClickQueue registers its metrics in set.
func newClickQueue(cfg settings, db schema.ClickHookStore, set *metrics.Set, log *slog.Logger) (*clickQueue, error) {
	countries, err := enrich.OpenCountries(cfg.clickHooks.geoIP, log)
	if err != nil {
		return nil, fmt.Errorf("-api.geoip: %w", err)
	}
	topics := cfg.topics
	topics.Group += webhookGroup
	client, err := stream.New(topics, log)
	if err != nil {
		return nil, err
	}
	bounds := worker.DefaultConfig()
	bounds.MaxBatch, bounds.Late = maxQueued, true
	q := &clickQueue{db: db, countries: countries, client: client, log: log}
	// The worker's own metrics count clicks that are stored, so they are not registered.
	q.worker = worker.New(bounds, clicksTopic{client}, queueStore{db}, countries, log.With("group", topics.Group),
		metrics.NewSet())
	const lag = "linkstream_api_webhook_lag_records"
	service.Describe(set, lag,
		"Clicks that wait to be put into deliveries to webhooks, in the partitions of this process.")
	set.NewGauge(lag, func() float64 { return float64(q.worker.Lag()) })
	return q, nil
}

// run runs until ctx is done.
func (q *clickQueue) run(ctx context.Context) {
	defer q.client.Close()
	defer service.RunInBackground(ctx, q.countries.Run)()
	stop := func() {}
	defer func() { stop() }()
	for reading, failing := false, false; ctx.Err() == nil; stream.Sleep(ctx, lookEvery) {
		accounts, err := q.db.ClickHookAccounts(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			q.log.Warn("cannot look for webhooks of clicks, retrying", "error", err)
		}
		if failing = err != nil; failing || reading == (len(accounts) > 0) {
			continue
		}
		stop()
		stop = func() {}
		if reading = !reading; reading {
			stop = service.RunInBackground(ctx, q.read)
		}
	}
}

func (q *clickQueue) read(ctx context.Context) {
	if err := q.worker.Run(ctx); err != nil && ctx.Err() == nil {
		q.log.Error("webhooks receive no more clicks", "error", err)
	}
}

// clicksTopic is the topic of clicks for a worker that does not count: ingest moves the dead letters.
type clicksTopic struct{ *stream.Client }

func (clicksTopic) ProduceDead(context.Context, *stream.Batch) error { return nil }

// queueStore makes a ClickHookStore the store of a worker.
type queueStore struct{ schema.ClickHookStore }

func (s queueStore) Position(ctx context.Context, partition int) (schema.Position, error) {
	return s.QueuedPosition(ctx, partition)
}

func (s queueStore) LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	return s.QueuedMarks(ctx, lanes)
}

func (s queueStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	return s.QueueClicks(ctx, batch)
}

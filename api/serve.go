package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/dashboard"
	"linkstream/api/invalidation"
	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
	"linkstream/schema/tracing"
)

// listen occupies the ports, and serves once the link store answers.
func listen(ctx context.Context, cfg settings, stdout io.Writer, log *slog.Logger) error {
	ops, err := service.ListenOps(cfg.ops, log)
	if err != nil {
		return err
	}
	defer ops.Close()
	tracer, err := tracing.Start(cfg.traces, "api", ops.AddMetrics, log)
	if err != nil {
		return err
	}
	defer tracer.Close()
	ctx, cfg.api.Tracer = tracer.Context(ctx), tracer
	service.AllowConnections(log, &cfg.api.MaxConnections)
	sockets, err := service.InheritSockets("api")
	if err != nil {
		return err
	}
	port, err := sockets.ListenStandby("api", cfg.api.Listen, "application/json", startingBody, log)
	if err != nil {
		return err
	}
	defer port.Close()
	ops.Require(port.Ready)
	cfg.api.Listener, cfg.api.PublicHealth = port, cfg.ops.Public
	return withLinks(ctx, cfg, postgres.Open, ops.Report(), log, func(db schema.Database, client *stream.Client,
		relay *invalidation.Relay) error {
		return serve(ctx, cfg, db, client, relay, ops, stdout, log)
	})
}

// clickLog is the topic of clicks and the store that counts it.
type clickLog struct {
	topic  *stream.Client
	clicks schema.PositionStore
}

// Lag implements clickreport.ClickLog.
func (l clickLog) Lag(ctx context.Context) (records int64, oldest time.Time, err error) {
	return l.topic.Lag(ctx, func(ctx context.Context, partition int) (int64, error) {
		at, err := l.clicks.Position(ctx, partition)
		return at.Next, err
	})
}

func serve(ctx context.Context, cfg settings, db schema.Database, client *stream.Client, relay *invalidation.Relay,
	ops *service.Ops, stdout io.Writer, log *slog.Logger) (err error) {
	report := ops.Report()
	clicks, err := clickhouse.New(ctx, cfg.clicks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clicks.Close()) }()
	defer migrateClicks(ctx, clicks, report)()
	if cfg.api.Private, err = links.ParseAddresses(ops.Addr()); err != nil {
		return err
	}
	api, err := apiservice.New(cfg.api, db, clicks, clickLog{client, clicks}, log)
	if err != nil {
		return err
	}
	if err := cfg.firstAccount.AwaitAndPrint(ctx, report, db, api.URL(), stdout); err != nil {
		return err
	}
	queue, err := newClickQueue(cfg, db, api.Metrics(), log)
	if err != nil {
		return err
	}
	defer service.RunInBackground(ctx, queue.run)()
	relay.RegisterMetrics(api.Metrics())
	ops.Add(api.Ready, api.Metrics())
	log.Info("serving the API and the dashboard", "listen", api.Addr(), "operators", ops.Addr(), "dashboard",
		api.URL().String()+dashboard.Root)
	return api.Run(ctx)
}

// clicksWait is how long the start waits for ClickHouse.
const clicksWait = 10 * time.Second

// migrateClicks brings the schema of ClickHouse up to date. It returns when that is done or after clicksWait, and goes
// on until stop. Meanwhile calls that need ClickHouse get 503.
func migrateClicks(ctx context.Context, clicks *clickhouse.ClickStore, report service.WaitReport) (stop func()) {
	migrated := make(chan struct{})
	stop = service.RunInBackground(ctx, func(ctx context.Context) {
		defer close(migrated)
		_ = service.AwaitOK(ctx, report, "ClickHouse", clicks.Migrate)
	})
	select {
	case <-migrated:
	case <-time.After(clicksWait):
	}
	return stop
}

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
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
	defer migrateClicks(ctx, clicks, ops)()
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

// migrateClicks brings the schema of ClickHouse up to date, in the background until stop. Meanwhile the API is ready
// without ClickHouse: calls that need it get 503.
func migrateClicks(ctx context.Context, clicks *clickhouse.ClickStore, ops *service.Ops) (stop func()) {
	var migrated atomic.Bool
	ops.Miss("ClickHouse", func() bool { return !migrated.Load() })
	return service.RunInBackground(ctx, func(ctx context.Context) {
		migrated.Store(service.AwaitOK(ctx, ops.Report(), "ClickHouse", clicks.Migrate) == nil)
	})
}

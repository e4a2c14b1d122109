package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"linkstream/api/apiservice"
	"linkstream/api/dashboard"
	"linkstream/schema"
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
	service.AllowConnections(cfg.api.MaxConnections, log)
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
	return withLinks(ctx, cfg, ops.Report(), log, func(db schema.Database, client *stream.Client) error {
		return serve(ctx, cfg, db, client, ops, stdout, log)
	})
}

func serve(ctx context.Context, cfg settings, db schema.Database, client *stream.Client, ops *service.Ops,
	stdout io.Writer, log *slog.Logger) error {
	report := ops.Report()
	clicks, err := openClicks(ctx, cfg, report)
	if err != nil {
		return err
	}
	api, err := apiservice.New(cfg.api, db, clicks, client, log)
	if err != nil {
		return errors.Join(err, clicks.Close())
	}
	if err := cfg.firstAccount.AwaitAndPrint(ctx, report, db, api.URL(), stdout); err != nil {
		return errors.Join(err, clicks.Close())
	}
	ops.Add(api.Ready, api.Metrics())
	log.Info("serving the API and the dashboard", "listen", api.Addr(), "operators", ops.Addr(), "dashboard", api.URL().String()+dashboard.Root)
	return errors.Join(api.Run(ctx), clicks.Close())
}

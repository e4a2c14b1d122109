// Api serves version 1 of the public API and the dashboard, and runs the operator's commands.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/api/dashboard"
	"linkstream/api/invalidation"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

func main() { service.Main("api", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, command, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	log := cfg.logs.Logger(stderr)
	if service.AsksHealth(command) {
		return cfg.ops.Health(ctx, command)
	}
	if len(command) > 0 {
		return withLinks(ctx, cfg, service.ReportToLog(log), log, func(db schema.Database, _ *stream.Client) error {
			return admin.Run(ctx, db, cfg.admin, command, stdout)
		})
	}
	ops, err := service.ListenOps(cfg.ops, log)
	if err != nil {
		return err
	}
	defer ops.Close()
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

// withLinks calls use with the link store, whose changes it publishes until use has returned.
func withLinks(ctx context.Context, cfg settings, report service.WaitReport, log *slog.Logger,
	use func(schema.Database, *stream.Client) error) error {
	client, err := stream.New(cfg.topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	links, err := service.Await(ctx, report, "Postgres", func(ctx context.Context) (*postgres.Store, error) {
		return postgres.Open(ctx, cfg.links)
	})
	if err != nil {
		return err
	}
	publisher := stream.NewInvalidationPublisher(client, log)
	// Publish until the last request is answered, which may be after ctx is done.
	stopPublishing := service.RunInBackground(context.WithoutCancel(ctx), publisher.Run)
	err = use(invalidation.Wrap(links, publisher), client)
	stopPublishing()
	return errors.Join(err, links.Close())
}

func serve(ctx context.Context, cfg settings, db schema.Database, client *stream.Client, ops *service.Ops,
	stdout io.Writer, log *slog.Logger) error {
	report := ops.Report()
	clicks, err := service.Await(ctx, report, "ClickHouse", func(ctx context.Context) (*clickhouse.ClickStore, error) {
		return clickhouse.OpenClickStore(ctx, cfg.clicks)
	})
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

// Edge serves short links: it looks them up, answers with a redirect, and records the click.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"

	"linkstream/edge/edgeservice"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

func main() { service.Main("edge", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg := settings{edgeservice.DefaultConfig()}
	cfg.Resolve.URL = service.DefaultEdgeURL
	database, topics, logs := postgres.DefaultConfig(), stream.DefaultConfig(), service.LogConfig{}
	operators := service.OpsConfig{Listen: service.OpsListen}
	command, err := service.ParseArgs("edge", usage, args, stderr, &cfg, &database, &topics, &logs, &operators)
	if err != nil {
		return err
	}
	if service.AsksHealth(command) {
		return operators.Health(ctx, command)
	}
	if len(command) > 0 {
		return runCommand(ctx, cfg, database, topics, command, stdout, logs.Logger(stderr))
	}
	edgeservice.BoundGarbage()
	cfg.Connections.ReserveCPUs()
	log := logs.Logger(stderr)
	return service.RunLogged(ctx, log,
		func(ctx context.Context) error { return serve(ctx, cfg, database, topics, operators, log) })
}

func serve(ctx context.Context, cfg settings, database postgres.Config, topics stream.Config,
	operators service.OpsConfig, log *slog.Logger) (err error) {
	if err := service.KeepPrivate(cfg.Spool.Dir, log); err != nil {
		return err
	}
	ops, err := service.ListenOps(operators, log)
	if err != nil {
		return err
	}
	defer ops.Close()
	service.AllowConnections(log, &cfg.Connections.MaxConnections)
	port, err := openPort(&cfg, log)
	if err != nil {
		return err
	}
	defer port.Close()
	ops.Require(port.Ready)
	cfg.Listener, cfg.Redirect.PublicHealth = port, operators.Public
	client, err := stream.New(topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	// Do not wait for the topics: until they exist, clicks stay in the spool.
	defer service.RunInBackground(ctx, func(ctx context.Context) {
		_ = service.AwaitOK(ctx, service.ReportToLog(log), "Kafka", client.EnsureTopics)
	})()
	links, err := postgres.New(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, links.Close()) }()
	defer migrate(ctx, links, ops, log)()
	edge, err := edgeservice.New(cfg.Config, links, client, log)
	if err != nil {
		return err
	}
	edge.Operate(ops)
	log.Info("serving short links", "listen", edge.Addr(), "tls", edge.TLSAddr(), "operators", ops.Addr(), "url",
		cfg.Resolve.URL)
	return edge.Run(ctx)
}

// migrate brings the schema up to date as soon as Postgres answers. The edge is not ready until then, but redirects
// visitors of the links that it has restored.
func migrate(ctx context.Context, links *postgres.Store, ops *service.Ops, log *slog.Logger) (stop func()) {
	var migrated atomic.Bool
	ops.Require(func(context.Context) error {
		if migrated.Load() {
			return nil
		}
		return &service.Unready{What: "Postgres", Cause: errors.New("its schema is not known to be up to date")}
	})
	return service.RunInBackground(ctx, func(ctx context.Context) {
		migrated.Store(service.AwaitOK(ctx, service.ReportToLog(log), "Postgres", links.Migrate) == nil)
	})
}

// Api serves version 1 of the public API and the dashboard, and runs the operator's commands.
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
		return runCommand(ctx, cfg, command, stdout, stderr, log)
	}
	return service.RunLogged(ctx, log, func(ctx context.Context) error { return listen(ctx, cfg, stdout, log) })
}

// listen occupies the ports, and serves once the link store answers.
func listen(ctx context.Context, cfg settings, stdout io.Writer, log *slog.Logger) error {
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

// Standalone is linkstream in one process on embedded engines: SQLite for links and clicks, and a broker that speaks
// Kafka's protocol. The services are the same as on several machines, only the addresses differ.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"linkstream/api/admin"
	"linkstream/ingest/verify"
	"linkstream/schema/service"
)

const usage = `Usage: standalone [flags] [command]

Without a command it runs the service.

` + service.HealthUsage + "\n"

// usageOfVerify follows the admin commands, which the api has, too.
var usageOfVerify = fmt.Sprintf("  %-26s %s\n", verify.Command, verify.Help)

func main() { service.Main("standalone", run) }

// run runs the services until ctx is done or, with arguments, one admin command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, logs, options, backups := DefaultConfig(), service.LogConfig{}, admin.Config{}, BackupConfig{}
	var check verify.Config
	command, err := service.ParseArgs("standalone", usage+admin.Usage+backupUsage+usageOfVerify, args, stderr, &cfg, &logs, &options,
		&backups, &check)
	if err != nil {
		return err
	}
	if service.AsksHealth(command) {
		return cfg.Ops.Health(ctx, command)
	}
	options.EdgeURL = cfg.EdgeURL
	log := logs.Logger(stderr)
	if err := service.KeepPrivate(cfg.Data, log); err != nil {
		return err
	}
	if isBackupCommand(command) {
		return runBackupCommand(ctx, cfg, backups, command, stdout, log)
	}
	if len(command) == 1 && command[0] == verify.Command {
		return runVerify(ctx, cfg, check, stdout, log)
	}
	if len(command) > 0 {
		return runCommand(ctx, cfg, options, command, stdout, stderr, log)
	}
	return service.RunLogged(ctx, log, func(ctx context.Context) error { return serve(ctx, cfg, stdout, log) })
}

func serve(ctx context.Context, cfg Config, stdout io.Writer, log *slog.Logger) error {
	sockets, err := service.InheritSockets("edge", "edge-tls", "api")
	if err != nil {
		return err
	}
	cfg.Edge.Listener, cfg.Edge.TLSListener, cfg.API.Listener = sockets["edge"], sockets["edge-tls"], sockets["api"]
	cfg.Edge.Connections.ReserveCPUs()
	app, err := Start(ctx, cfg, stdout, log)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// Standalone is linkstream in one process on embedded engines: SQLite for links and clicks, and a broker that speaks
// Kafka's protocol. The services are the same as on several machines, only the addresses differ.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"linkstream/api/admin"
	"linkstream/api/invalidation"
	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
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
		return runCommand(ctx, cfg, options, command, stdout, log)
	}
	sockets, err := service.InheritSockets("edge", "api")
	if err != nil {
		return err
	}
	cfg.Edge.Listener, cfg.API.Listener = sockets["edge"], sockets["api"]
	cfg.Edge.Connections.ReserveCPUs()
	app, err := Start(ctx, cfg, stdout, log)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// runCommand runs an admin command, also while the service runs. The service's caches learn of the changes by its broker.
func runCommand(
	ctx context.Context, cfg Config, options admin.Config, command []string, stdout io.Writer, log *slog.Logger,
) error {
	if err := cfg.target().Check(); err != nil {
		return err
	}
	links, err := sqlite.Open(ctx, cfg.linksPath())
	if err != nil {
		return err
	}
	clicks, err := sqlite.OpenClickStore(ctx, cfg.clicksPath()) // only for migrate, which creates both files
	if err != nil {
		return errors.Join(err, links.Close())
	}
	run := func(db schema.Database) error { return admin.Run(ctx, db, options, command, stdout) }
	return errors.Join(withPublishing(ctx, cfg, links, run, log), clicks.Close(), links.Close())
}

// withPublishing calls use with a database whose changes are published, if the service runs.
func withPublishing(
	ctx context.Context, cfg Config, links schema.Database, use func(schema.Database) error, log *slog.Logger,
) error {
	addr, ok := runningBroker(cfg.brokerAddrPath())
	if !ok {
		return use(links)
	}
	secret, err := brokerSecret(cfg.brokerSecretPath())
	if err != nil {
		return err
	}
	client, err := stream.New(streamConfig([]string{addr}, secret), log)
	if err != nil {
		return err
	}
	defer client.Close()
	publisher := stream.NewInvalidationPublisher(client, log)
	defer service.RunInBackground(context.WithoutCancel(ctx), publisher.Run)() // sends what is queued
	return use(invalidation.Wrap(links, publisher))
}

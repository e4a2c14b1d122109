// Standalone is linkstream in one process on embedded engines: SQLite for links and clicks, and a broker that speaks
// Kafka's protocol. The services are the same as on several machines, only the addresses differ.
package main

import (
	"context"
	"errors"
	"io"

	"linkstream/api/admin"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
)

const usage = `Usage: standalone [flags] [command]

Without a command it runs the service.

`

func main() { service.Main("standalone", run) }

// run runs the services until ctx is done or, with arguments, one admin command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, logs, options := DefaultConfig(), service.LogConfig{}, admin.Config{}
	command, err := service.ParseArgs("standalone", usage+admin.Usage, args, stderr, &cfg, &logs, &options)
	if err != nil {
		return err
	}
	options.EdgeURL = cfg.EdgeURL
	log := logs.Logger(stderr)
	if err := service.KeepPrivate(cfg.Data, log); err != nil {
		return err
	}
	if len(command) > 0 {
		return runCommand(ctx, cfg, options, command, stdout)
	}
	cfg.Edge.Connections.ReserveCPUs()
	app, err := Start(ctx, cfg, stdout, log)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// runCommand runs an admin command. It uses the stores only, so it works while the service runs.
func runCommand(ctx context.Context, cfg Config, options admin.Config, command []string, stdout io.Writer) error {
	links, err := sqlite.Open(ctx, cfg.linksPath())
	if err != nil {
		return err
	}
	clicks, err := sqlite.OpenClickStore(ctx, cfg.clicksPath()) // only for migrate, which creates both files
	if err != nil {
		return errors.Join(err, links.Close())
	}
	return errors.Join(admin.Run(ctx, links, options, command, stdout), clicks.Close(), links.Close())
}

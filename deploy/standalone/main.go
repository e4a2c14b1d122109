// Standalone is linkstream in one process, with everything it needs inside: SQLite for links and counts, and a broker
// that speaks Kafka's protocol. The services are those of a cluster; only the addresses are others.
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

// run is the program: the services until ctx is done or, with arguments, one admin command.
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

// runCommand runs an admin command on the stores alone, so it works beside a running service.
func runCommand(ctx context.Context, cfg Config, options admin.Config, command []string, stdout io.Writer) error {
	links, err := sqlite.Open(ctx, cfg.linksPath())
	if err != nil {
		return err
	}
	clicks, err := sqlite.OpenClickStore(ctx, cfg.clicksPath()) // no command needs it, but migrate is for both files
	if err != nil {
		return errors.Join(err, links.Close())
	}
	return errors.Join(admin.Run(ctx, links, options, command, stdout), clicks.Close(), links.Close())
}

// Standalone is linkstream in one process, with everything it needs inside: SQLite for links and counts, and a broker
// that speaks Kafka's protocol. The services are those of a cluster; only the addresses are others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"linkstream/api/admin"
	"linkstream/deploy/config"
	"linkstream/schema/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "standalone: %v\n", err)
		os.Exit(1)
	}
}

// run is the program: the services until ctx is done or, with arguments, one admin command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg := DefaultConfig()
	var logs config.Log
	var options admin.Config
	fs := flag.NewFlagSet("standalone", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "Usage: standalone [flags] [command]\n\nWithout a command it runs the service.\n\n%s\nFlags, each also read from the environment (-edge.listen from LINKSTREAM_EDGE_LISTEN):\n", admin.Usage)
		fs.PrintDefaults()
	}
	command, err := config.Parse(fs, args, &cfg, &logs, &options)
	if err != nil {
		return err
	}
	if len(command) > 0 {
		return runCommand(ctx, cfg, options, command, stdout)
	}
	app, err := Start(ctx, cfg, stdout, logs.Logger(stderr))
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// runCommand runs an admin command on the stores alone, so it works beside a running service.
func runCommand(ctx context.Context, cfg Config, options admin.Config, command []string, stdout io.Writer) error {
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	links, err := sqlite.OpenLinks(ctx, cfg.linksPath())
	if err != nil {
		return err
	}
	clicks, err := sqlite.OpenClicks(ctx, cfg.clicksPath()) // no command needs it, but migrate is for both files
	if err != nil {
		return errors.Join(err, links.Close())
	}
	return errors.Join(admin.Run(ctx, links, options, command, stdout), clicks.Close(), links.Close())
}

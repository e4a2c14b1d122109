package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/api/invalidation"
	"linkstream/api/shorten"
	"linkstream/deploy/standalone/embedded"
	"linkstream/edge/edgeservice"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
)

// runCommand runs an admin command, also while the service runs. The service's caches learn of the changes by its broker.
func runCommand(
	ctx context.Context, cfg Config, options admin.Config, command []string, stdout, stderr io.Writer, log *slog.Logger,
) error {
	if err := cfg.target().Check(); err != nil {
		return err
	}
	links, err := sqlite.Open(ctx, cfg.dir().Links())
	if err != nil {
		return err
	}
	clicks, err := sqlite.OpenClickStore(ctx, cfg.dir().Clicks()) // for export, and for migrate, which creates both files
	if err != nil {
		return errors.Join(err, links.Close())
	}
	options.Parts = admin.Parts{In: os.Stdin, Progress: stderr,
		Shortener: func(links schema.LinkStore, domains schema.DomainStore) (*shorten.Shortener, error) {
			return apiservice.NewShortener(cfg.API, links, domains, log)
		},
		Clicks: func(context.Context) (admin.ClickCounter, error) { return clicks, nil }}
	run := func(db schema.Database) error { return admin.Run(ctx, db, options, command, stdout) }
	return errors.Join(withPublishing(ctx, cfg, links, run, log), clicks.Close(), links.Close())
}

// withPublishing calls use with a database whose changes are published, if the service runs.
func withPublishing(
	ctx context.Context, cfg Config, links schema.Database, use func(schema.Database) error, log *slog.Logger,
) error {
	addr, ok := cfg.dir().RunningBroker()
	if !ok {
		// Nobody tells the service what changes while it is down, so it must not serve what it had cached before.
		if err := os.Remove(filepath.Join(cfg.dir().Spool(), edgeservice.SnapshotName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return use(links)
	}
	secret, err := cfg.dir().Secret()
	if err != nil {
		return err
	}
	client, err := stream.New(embedded.StreamConfig([]string{addr}, secret), log)
	if err != nil {
		return err
	}
	defer client.Close()
	publisher := stream.NewInvalidationPublisher(client, log)
	defer service.RunInBackground(context.WithoutCancel(ctx), publisher.Run)() // sends what is queued
	return use(invalidation.Wrap(links, publisher))
}

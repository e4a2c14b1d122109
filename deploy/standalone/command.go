package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/api/links"
	"linkstream/schema"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
)

// runCommand runs an admin command, also while the service runs. The service reads from the outbox what has changed.
func runCommand(
	ctx context.Context, cfg Config, options admin.Config, command []string, stdout, stderr io.Writer, log *slog.Logger,
) error {
	if err := cfg.target().Check(); err != nil {
		return err
	}
	openLinks, openClicks := linksqlite.Open, sqlite.OpenClickStore
	if admin.OnlyReads(options, command) {
		openLinks, openClicks = linksqlite.OpenCurrent, sqlite.OpenCurrentClickStore
	}
	db, err := openLinks(ctx, cfg.dir().Links())
	if err != nil {
		return err
	}
	clicks, err := openClicks(ctx, cfg.dir().Clicks()) // for export, and for migrate, which creates both files
	if err != nil {
		return errors.Join(err, db.Close())
	}
	options.Parts = admin.Parts{In: os.Stdin, Progress: stderr,
		Shortener: func(store schema.LinkStore, domains schema.DomainStore) (*links.Shortener, error) {
			return apiservice.NewShortener(cfg.API, store, domains, log)
		},
		Clicks: func(context.Context) (admin.Clicks, error) { return clicks, nil }}
	return errors.Join(admin.Run(ctx, db, options, command, stdout), clicks.Close(), db.Close())
}

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/api/invalidation"
	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

// runCommand runs a command of the operator.
func runCommand(ctx context.Context, cfg settings, command []string, stdout, stderr io.Writer, log *slog.Logger) error {
	report := service.ReportToLog(log)
	openLinks := postgres.Open
	if admin.OnlyReads(cfg.admin, command) {
		openLinks = postgres.OpenCurrent
	}
	return withLinks(ctx, cfg, openLinks, report, log,
		func(db schema.Database, _ *stream.Client, _ *invalidation.Relay) error {
			var clicks *clickhouse.ClickStore
			cfg.admin.Parts = admin.Parts{In: os.Stdin, Progress: stderr,
				Shortener: func(store schema.LinkStore, domains schema.DomainStore) (*links.Shortener, error) {
					return apiservice.NewShortener(cfg.api, store, domains, log)
				},
				Clicks: func(ctx context.Context) (_ admin.Clicks, err error) {
					clicks, err = openClicks(ctx, cfg, report)
					return clicks, err
				}}
			err := admin.Run(ctx, db, cfg.admin, command, stdout)
			if clicks != nil {
				err = errors.Join(err, clicks.Close())
			}
			return err
		})
}

// openClicks waits for ClickHouse, which commands only read.
func openClicks(ctx context.Context, cfg settings, report service.WaitReport) (*clickhouse.ClickStore, error) {
	return service.Await(ctx, report, "ClickHouse", func(ctx context.Context) (*clickhouse.ClickStore, error) {
		return clickhouse.OpenCurrentClickStore(ctx, cfg.clicks)
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"linkstream/deploy/standalone/embedded"
	"linkstream/edge/spool"
	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
)

// runVerify checks the counts, while the service runs or not.
func runVerify(ctx context.Context, cfg Config, options verify.Config, stdout io.Writer, log *slog.Logger) error {
	if _, err := os.Stat(cfg.dir().Clicks()); err != nil {
		return verify.Unknown(fmt.Errorf("%q is not the data of a service: %w", cfg.Data, err))
	}
	addr, secret, stop, err := cfg.dir().OpenBroker(log)
	if err != nil {
		return verify.Unknown(err)
	}
	defer stop()
	client, err := stream.New(embedded.StreamConfig([]string{addr}, secret), log)
	if err != nil {
		return verify.Unknown(err)
	}
	defer client.Close()
	clicks, err := sqlite.OpenClickStore(ctx, cfg.dir().Clicks())
	if err != nil {
		return verify.Unknown(err)
	}
	own := func() ([]schema.SpoolReport, error) {
		report, err := spool.Inspect(cfg.Edge.Spool.Dir)
		if errors.Is(err, fs.ErrNotExist) { // no edge has run yet
			return nil, nil
		}
		return []schema.SpoolReport{report}, err
	}
	err = verify.RunCommand(ctx, options, verify.Sources{Topic: client, Clicks: clicks}, own, os.Stdin, stdout)
	return errors.Join(err, clicks.Close())
}

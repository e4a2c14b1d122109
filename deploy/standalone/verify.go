package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"linkstream/edge/spool"
	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

// runVerify checks the counts, while the service runs or not.
func runVerify(ctx context.Context, cfg Config, options verify.Config, stdout io.Writer) error {
	if _, err := os.Stat(cfg.dir().Clicks()); err != nil {
		return verify.Unknown(fmt.Errorf("%q is not the data of a service: %w", cfg.Data, err))
	}
	clicks, err := sqlite.OpenCurrentClickStore(ctx, cfg.dir().Clicks())
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
	err = verify.RunCommand(ctx, options, verify.Sources{Clicks: clicks, Imported: clicks}, own, os.Stdin, stdout)
	return errors.Join(err, clicks.Close())
}

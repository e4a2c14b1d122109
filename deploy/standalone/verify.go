package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"linkstream/edge/spool"
	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/filelock"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
)

// runVerify checks the counts, while the service runs or not.
func runVerify(ctx context.Context, cfg Config, options verify.Config, stdout io.Writer, log *slog.Logger) error {
	if _, err := os.Stat(cfg.clicksPath()); err != nil {
		return verify.Unknown(fmt.Errorf("%q is not the data of a service: %w", cfg.Data, err))
	}
	addr, secret, stop, err := openBroker(cfg, log)
	if err != nil {
		return verify.Unknown(err)
	}
	defer stop()
	client, err := stream.New(streamConfig([]string{addr}, secret), log)
	if err != nil {
		return verify.Unknown(err)
	}
	defer client.Close()
	clicks, err := sqlite.OpenClickStore(ctx, cfg.clicksPath())
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

// openBroker returns the address and the secret of the broker. If the service does not run, it starts the broker, and keeps the
// service from starting until stop is called.
func openBroker(cfg Config, log *slog.Logger) (addr, secret string, stop func(), err error) {
	if secret, err = brokerSecret(cfg.brokerSecretPath()); err != nil {
		return "", "", nil, err
	}
	lock, err := filelock.TryAcquire(filepath.Join(cfg.Data, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		addr, ok := runningBroker(cfg.brokerAddrPath())
		if !ok {
			return "", "", nil, errors.New("the service is starting or stopping, try again")
		}
		return addr, secret, func() {}, nil
	}
	if err != nil {
		return "", "", nil, fmt.Errorf("lock data directory: %w", err)
	}
	broker, err := startBroker(cfg.brokerDir(), secret, log.With("service", "broker"))
	if err != nil {
		return "", "", nil, errors.Join(err, lock.Release())
	}
	stop = func() {
		broker.Close()
		_ = lock.Release() // the process ends
	}
	return broker.ListenAddrs()[0], secret, stop, nil
}

package testengines

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// All is one engine of each kind.
type All struct{ Postgres, Kafka, ClickHouse *Engine }

// OpenAll returns the engines that the environment names and starts the others at the same time, each in its own folder
// in dir. After an error none runs.
func OpenAll(ctx context.Context, dir string, log *slog.Logger) (*All, error) {
	return startAll(ctx, dir, log, Postgres, Kafka, ClickHouse)
}

// StartAll is OpenAll, but it starts all engines, whatever the environment names.
func StartAll(ctx context.Context, dir string, log *slog.Logger) (*All, error) {
	return startAll(ctx, dir, log, StartPostgres, StartKafka, StartClickHouse)
}

func startAll(ctx context.Context, dir string, log *slog.Logger, postgres, kafka, clickhouse Starter) (*All, error) {
	var a All
	group, ctx := errgroup.WithContext(ctx)
	start := func(e **Engine, name string, starter Starter) {
		group.Go(func() (err error) {
			*e, err = starter(ctx, filepath.Join(dir, name), log)
			return err
		})
	}
	start(&a.Postgres, "postgres", postgres)
	start(&a.Kafka, "kafka", kafka)
	start(&a.ClickHouse, "clickhouse", clickhouse)
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &a, nil
}

// Engines returns the engines.
func (a *All) Engines() []*Engine { return []*Engine{a.ClickHouse, a.Kafka, a.Postgres} }

// Close closes the engines at the same time.
func (a *All) Close() error {
	engines := a.Engines()
	errs := make([]error, len(engines))
	var group errgroup.Group
	for i, e := range engines {
		if e != nil {
			group.Go(func() error { errs[i] = e.Close(); return nil })
		}
	}
	_ = group.Wait() // the errors are in errs
	return errors.Join(errs...)
}

// Environment returns the variables, as KEY=VALUE, that give the engines' addresses to other processes.
func (a *All) Environment() []string {
	return []string{PostgresEnv + "=" + a.Postgres.Addr, KafkaEnv + "=" + a.Kafka.Addr,
		ClickHouseEnv + "=" + a.ClickHouse.Addr, ClickHouseHTTPEnv + "=" + a.ClickHouse.HTTPAddr}
}

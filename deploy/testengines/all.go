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

// StartAll returns Postgres, Kafka and ClickHouse, each in its own folder in dir. Those that are not in the environment
// start at the same time. After an error none runs.
func StartAll(ctx context.Context, dir string, log *slog.Logger) (*All, error) {
	var a All
	group, ctx := errgroup.WithContext(ctx)
	start := func(e **Engine, name string, starter Starter) {
		group.Go(func() (err error) {
			*e, err = starter(ctx, filepath.Join(dir, name), log)
			return err
		})
	}
	start(&a.Postgres, "postgres", Postgres)
	start(&a.Kafka, "kafka", Kafka)
	start(&a.ClickHouse, "clickhouse", ClickHouse)
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &a, nil
}

// Engines returns the engines.
func (a *All) Engines() []*Engine { return []*Engine{a.ClickHouse, a.Kafka, a.Postgres} }

// Close closes the engines.
func (a *All) Close() error {
	var errs []error
	for _, e := range a.Engines() {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}

// Environment returns the variables, as KEY=VALUE, that give the engines' addresses to other processes.
func (a *All) Environment() []string {
	return []string{PostgresEnv + "=" + a.Postgres.Addr, KafkaEnv + "=" + a.Kafka.Addr,
		ClickHouseEnv + "=" + a.ClickHouse.Addr, ClickHouseHTTPEnv + "=" + a.ClickHouse.HTTPAddr}
}

// Up runs linkstream as it runs on several machines, on this one: real Postgres, Kafka and ClickHouse, and the three
// services as processes of their own. It keeps its data and stops all of it on Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"linkstream/deploy/config"
	"linkstream/deploy/local"
	"linkstream/deploy/program"
)

const usage = `Usage: up [flags]

It finds, installs or starts Postgres, Kafka and ClickHouse on this machine, then runs the programs edge, api and ingest
that stand beside it. Their flags are read from the environment.
`

func main() { program.Main("up", run) }

// settings are those of this program.
type settings struct{ data string }

// RegisterFlags binds the settings to flags.
func (s *settings) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&s.data, "data", "./data", "`directory` of everything that is kept")
}

// Validate finds nothing invalid.
func (s *settings) Validate() error { return nil }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, logs := settings{}, config.Log{}
	if _, err := program.Parse("up", usage, args, stderr, &cfg, &logs); err != nil {
		return err
	}
	data, err := filepath.Abs(cfg.data)
	if err != nil {
		return err
	}
	engines, err := startEngines(ctx, filepath.Join(data, "engines"), logs.Logger(stderr))
	if err != nil {
		return errors.Join(err, engines.close())
	}
	for _, e := range []*local.Engine{engines.postgres, engines.kafka, engines.clickhouse} {
		fmt.Fprintf(stdout, "%s\n", e)
	}
	return errors.Join(runServices(ctx, data, engines, stdout, stderr), engines.close())
}

type engines struct{ postgres, kafka, clickhouse *local.Engine }

// startEngines starts all engines at the same time. The result holds those that started, also after an error.
func startEngines(ctx context.Context, dir string, log *slog.Logger) (e engines, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return e, err
	}
	var starting errgroup.Group
	start := func(into **local.Engine, name string, starter local.Starter) {
		starting.Go(func() (err error) {
			*into, err = starter(ctx, filepath.Join(dir, name), log)
			return err
		})
	}
	start(&e.postgres, "postgres", local.Postgres)
	start(&e.kafka, "kafka", local.Kafka)
	start(&e.clickhouse, "clickhouse", local.ClickHouse)
	return e, starting.Wait()
}

func (e engines) close() error {
	var errs []error
	for _, engine := range []*local.Engine{e.clickhouse, e.kafka, e.postgres} {
		if engine != nil {
			errs = append(errs, engine.Close())
		}
	}
	return errors.Join(errs...)
}

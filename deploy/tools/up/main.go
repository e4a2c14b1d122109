// Up runs linkstream on this machine as it runs on several: real Postgres, Kafka and ClickHouse, and the three services
// as processes of their own. It keeps their data and stops everything on Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/service"
)

const usage = `Usage: up [flags]

It finds or installs and starts Postgres, Kafka and ClickHouse on this machine, then runs the programs edge, api and
ingest, which must be in the same folder. They read their flags from the environment.
`

func main() { service.Main("up", run) }

// settings are the flags of this program.
type settings struct{ data string }

// RegisterFlags binds the settings to flags.
func (s *settings) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&s.data, "data", "./data", "`directory` of all data")
}

// Validate returns nil: every directory is valid.
func (s *settings) Validate() error { return nil }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, logs := settings{}, service.LogConfig{}
	if _, err := service.ParseArgs("up", usage, args, stderr, &cfg, &logs); err != nil {
		return err
	}
	log := logs.Logger(stderr)
	return service.RunLogged(ctx, log, func(ctx context.Context) error { return serve(ctx, cfg, stdout, stderr, log) })
}

func serve(ctx context.Context, cfg settings, stdout, stderr io.Writer, log *slog.Logger) error {
	data, err := filepath.Abs(cfg.data)
	if err != nil {
		return err
	}
	engines, err := testengines.OpenAll(ctx, filepath.Join(data, "engines"), log)
	if err != nil {
		return err
	}
	for _, e := range engines.Engines() {
		fmt.Fprintln(stdout, e)
	}
	return errors.Join(runServices(ctx, data, engines, stdout, stderr), engines.Close())
}

// Edge serves short links: it resolves them, answers 302 and records the clicks.
package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"linkstream/deploy/config"
	"linkstream/deploy/program"
	"linkstream/edge/node"
	"linkstream/schema/ops"
	"linkstream/schema/postgres"
	"linkstream/schema/stream"
)

const usage = `Usage: edge [flags]

It needs a Postgres database with the links and takes clicks to Kafka; while either is away it goes on with what it has.
`

func main() { program.Main("edge", run) }

// settings are those of the edge that are the program's own.
type settings struct {
	node.Config
}

// RegisterFlags binds the settings to flags.
func (s *settings) RegisterFlags(fs *flag.FlagSet) {
	s.Config.RegisterFlags(fs)
	fs.StringVar(&s.Spool.Dir, "spool.dir", "./spool", "`directory` of clicks that wait for the broker")
}

func run(ctx context.Context, args []string, _, stderr io.Writer) error {
	cfg := settings{node.DefaultConfig()}
	public := config.Public{URL: "http://127.0.0.1:8080"}
	database, topics, logs := config.DefaultPostgres(), stream.DefaultConfig(), config.Log{}
	if _, err := program.Parse("edge", usage, args, stderr, &cfg, &public, &database, &topics, &logs); err != nil {
		return err
	}
	cfg.Redirect.URL = public.URL
	node.BoundGarbage()
	log := logs.Logger(stderr)
	port, err := ops.Start(cfg.Listen, "text/plain; charset=utf-8", "The service is starting: try again soon.\n", log)
	if err != nil {
		return err
	}
	defer port.Close()
	cfg.Listener = port
	client, err := stream.New(topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	// Redirects do not wait for the topics: until they exist the clicks stay in the spool.
	defer program.Background(ctx, func(ctx context.Context) { _ = program.AwaitTopics(ctx, program.LogTo(log), client) })()
	report := program.Tell(log, port)
	links, err := program.Await(ctx, report, "Postgres", func(ctx context.Context) (*postgres.Links, error) {
		return postgres.OpenLinks(ctx, database.DSN)
	})
	if err != nil {
		return err
	}
	edge, err := node.New(cfg.Config, links, client, log)
	if err != nil {
		return errors.Join(err, links.Close())
	}
	log.Info("serving short links", "listen", edge.Addr(), "url", public.URL)
	return errors.Join(edge.Run(ctx), links.Close())
}

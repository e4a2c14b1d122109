// Api serves version 1 of the API and the dashboard, and has the admin commands.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"linkstream/api/admin"
	"linkstream/api/dashboard"
	"linkstream/api/node"
	"linkstream/deploy/config"
	"linkstream/deploy/program"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/postgres"
	"linkstream/schema/stream"
)

const usage = `Usage: api [flags] [command]

Without a command it serves the API and the dashboard, from a Postgres database and from ClickHouse.

`

func main() { program.Main("api", run) }

// settings are all of the program.
type settings struct {
	node   node.Config
	public config.Public
	first  program.Bootstrap
	links  config.Postgres
	clicks clickhouse.Config
	topics stream.Config
	logs   config.Log
	admin  admin.Config
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s := settings{node: node.DefaultConfig(), public: config.Public{URL: "http://127.0.0.1:8080"},
		links: config.DefaultPostgres(), clicks: clickhouse.Config{DSN: clickhouse.DefaultDSN}, topics: stream.DefaultConfig()}
	command, err := program.Parse("api", usage+admin.Usage, args, stderr,
		&s.node, &s.public, &s.first, &s.links, &s.clicks, &s.topics, &s.logs, &s.admin)
	if err != nil {
		return err
	}
	s.node.EdgeURL = s.public.URL
	log := s.logs.Logger(stderr)
	client, err := stream.New(s.topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	links, err := program.Await(ctx, log, "Postgres", func(ctx context.Context) (*postgres.Links, error) {
		return postgres.OpenLinks(ctx, s.links.DSN)
	})
	if err != nil {
		return err
	}
	announcer := stream.NewAnnouncer(client, log)
	stop := program.Background(ctx, announcer.Run)
	db := stream.Announced(links, announcer)
	if len(command) > 0 {
		err = admin.Run(ctx, db, s.admin, command, stdout)
	} else {
		err = s.serve(ctx, db, stdout, log)
	}
	stop()
	return errors.Join(err, links.Close())
}

// serve serves the API until ctx is done.
func (s *settings) serve(ctx context.Context, db schema.Database, stdout io.Writer, log *slog.Logger) error {
	clicks, err := program.Await(ctx, log, "ClickHouse", func(ctx context.Context) (*clickhouse.Clicks, error) {
		return clickhouse.OpenClicks(ctx, s.clicks)
	})
	if err != nil {
		return err
	}
	api, err := node.New(s.node, db, clicks, log)
	if err != nil {
		return errors.Join(err, clicks.Close())
	}
	if err := s.first.Make(ctx, db, api.URL(), stdout); err != nil {
		return errors.Join(err, clicks.Close())
	}
	log.Info("serving the API and the dashboard", "listen", api.Addr(), "dashboard", api.URL()+dashboard.Root)
	return errors.Join(api.Run(ctx), clicks.Close())
}

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
	"linkstream/deploy/program"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/ops"
	"linkstream/schema/postgres"
	"linkstream/schema/stream"
)

func main() { program.Main("api", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, command, err := parse(args, stderr)
	if err != nil {
		return err
	}
	log := s.logs.Logger(stderr)
	report := program.LogTo(log)
	if len(command) == 0 {
		port, err := ops.Start(s.node.Listen, "application/json", starting, log)
		if err != nil {
			return err
		}
		defer port.Close()
		s.node.Listener, report = port, program.Tell(log, port)
	}
	client, err := stream.New(s.topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	links, err := program.Await(ctx, report, "Postgres", func(ctx context.Context) (*postgres.Links, error) {
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
		err = s.serve(ctx, db, client, report, stdout, log)
	}
	stop()
	return errors.Join(err, links.Close())
}

// serve serves the API until ctx is done.
func (s *settings) serve(ctx context.Context, db schema.Database, client *stream.Client, report program.Report,
	stdout io.Writer, log *slog.Logger) error {
	clicks, err := program.Await(ctx, report, "ClickHouse", func(ctx context.Context) (*clickhouse.Clicks, error) {
		return clickhouse.OpenClicks(ctx, s.clicks)
	})
	if err != nil {
		return err
	}
	api, err := node.New(s.node, db, clicks, client, log)
	if err != nil {
		return errors.Join(err, clicks.Close())
	}
	if err := s.first.Await(ctx, report, db, api.URL(), stdout); err != nil {
		return errors.Join(err, clicks.Close())
	}
	log.Info("serving the API and the dashboard", "listen", api.Addr(), "dashboard", api.URL()+dashboard.Root)
	return errors.Join(api.Run(ctx), clicks.Close())
}

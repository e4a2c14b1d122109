// Api serves version 1 of the API and the dashboard, and has the admin commands.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/api/dashboard"
	"linkstream/api/invalidation"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

func main() { service.Main("api", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, command, err := parse(args, stderr)
	if err != nil {
		return err
	}
	log := s.logs.Logger(stderr)
	report := service.ReportToLog(log)
	if len(command) == 0 {
		port, err := service.ListenStandby(s.node.Listen, "application/json", starting, log)
		if err != nil {
			return err
		}
		defer port.Close()
		s.node.Listener, report = port, port.Report(log)
	}
	client, err := stream.New(s.topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	links, err := service.Await(ctx, report, "Postgres", func(ctx context.Context) (*postgres.Store, error) {
		return postgres.Open(ctx, s.links.DSN)
	})
	if err != nil {
		return err
	}
	publisher := stream.NewInvalidationPublisher(client, log)
	stop := service.RunInBackground(ctx, publisher.Run)
	db := invalidation.Wrap(links, publisher)
	if len(command) > 0 {
		err = admin.Run(ctx, db, s.admin, command, stdout)
	} else {
		err = s.serve(ctx, db, client, report, stdout, log)
	}
	stop()
	return errors.Join(err, links.Close())
}

// serve serves the API until ctx is done.
func (s *settings) serve(ctx context.Context, db schema.Database, client *stream.Client, report service.WaitReport,
	stdout io.Writer, log *slog.Logger) error {
	clicks, err := service.Await(ctx, report, "ClickHouse", func(ctx context.Context) (*clickhouse.Clicks, error) {
		return clickhouse.OpenClicks(ctx, s.clicks)
	})
	if err != nil {
		return err
	}
	api, err := apiservice.New(s.node, db, clicks, client, log)
	if err != nil {
		return errors.Join(err, clicks.Close())
	}
	if err := s.firstAccount.AwaitAndPrint(ctx, report, db, api.URL(), stdout); err != nil {
		return errors.Join(err, clicks.Close())
	}
	log.Info("serving the API and the dashboard", "listen", api.Addr(), "dashboard", api.URL().String()+dashboard.Root)
	return errors.Join(api.Run(ctx), clicks.Close())
}

package main

import (
	"context"
	"errors"
	"log/slog"

	"linkstream/api/invalidation"
	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

// withLinks calls use with the link store that open returns, whose changes it publishes until use has returned.
func withLinks(ctx context.Context, cfg settings, open func(context.Context, postgres.Config) (*postgres.Store, error),
	report service.WaitReport, log *slog.Logger,
	use func(schema.Database, *stream.Client, *invalidation.Relay) error) error {
	client, err := stream.New(cfg.topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	links, err := service.Await(ctx, report, "Postgres", func(ctx context.Context) (*postgres.Store, error) {
		return open(ctx, cfg.links)
	})
	if err != nil {
		return err
	}
	relay := invalidation.NewRelay(links, invalidation.KeepPublished, client.PublishChanges, log)
	// Publish until the last request is answered, which may be after ctx is done.
	stopPublishing := service.RunInBackground(context.WithoutCancel(ctx), relay.Run)
	err = use(invalidation.Wrap(links, relay.Wake), client, relay)
	stopPublishing()
	return errors.Join(err, links.Close())
}

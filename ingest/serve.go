package main

import (
	"context"
	"errors"
	"log/slog"

	"linkstream/ingest/ingestservice"
	"linkstream/schema/clickhouse"
	"linkstream/schema/service"
	"linkstream/schema/stream"
	"linkstream/schema/tracing"
)

func serve(ctx context.Context, cfg ingestservice.Config, database clickhouse.Config, retention clickhouse.Retention,
	topics stream.Config, operators service.OpsConfig, traces tracing.Config, log *slog.Logger) error {
	ops, err := service.ListenOps(operators, log)
	if err != nil {
		return err
	}
	defer ops.Close() // last: operators see a slow stop
	tracer, err := tracing.Start(traces, "ingest", ops.AddMetrics, log)
	if err != nil {
		return err
	}
	defer tracer.Close()
	ctx = tracer.Context(ctx)
	client, err := stream.New(topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	report := ops.Report()
	clicks, err := service.Await(ctx, report, "ClickHouse", func(ctx context.Context) (*clickhouse.ClickStore, error) {
		return clickhouse.OpenClickStore(ctx, database)
	})
	if err != nil {
		return err
	}
	if err := service.AwaitOK(ctx, report, "Kafka", client.EnsureTopics); err != nil {
		return errors.Join(err, clicks.Close())
	}
	ingest, err := ingestservice.New(cfg, clicks, client, log)
	if err != nil {
		return errors.Join(err, clicks.Close())
	}
	ingest.CompactDaily(clickhouse.NewCompactor(clicks, retention, log))
	ops.Add(ingest.Ready, ingest.Metrics())
	log.Info("counting clicks", "operators", ops.Addr())
	return errors.Join(ingest.Run(ctx), clicks.Close())
}

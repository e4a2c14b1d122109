// Ingest counts clicks: it consumes them from Kafka and inserts them into ClickHouse, each one exactly once.
package main

import (
	"context"
	"errors"
	"io"

	"linkstream/ingest/ingestservice"
	"linkstream/schema/clickhouse"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const usage = `Usage: ingest [flags] [command]

Ingest counts the clicks that edges produce to Kafka. All ingest processes with the same consumer group share the
partitions of the topic.

` + service.HealthUsage

func main() { service.Main("ingest", run) }

func run(ctx context.Context, args []string, _, stderr io.Writer) error {
	cfg, topics := ingestservice.DefaultConfig(), stream.DefaultConfig()
	operators := service.OpsConfig{Listen: "127.0.0.1:9082"}
	database, retention, logs := clickhouse.DefaultConfig(), clickhouse.DefaultRetention(), service.LogConfig{}
	command, err := service.ParseArgs("ingest", usage, args, stderr, &cfg, &database, &retention, &topics, &logs, &operators)
	if err != nil {
		return err
	}
	if len(command) > 0 {
		return operators.Health(ctx, command)
	}
	log := logs.Logger(stderr)
	ops, err := service.ListenOps(operators, log)
	if err != nil {
		return err
	}
	defer ops.Close() // last: operators see a slow stop
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

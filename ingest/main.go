// Ingest counts clicks: it consumes them from Kafka and inserts them into ClickHouse, each one exactly once.
package main

import (
	"context"
	"io"

	"linkstream/ingest/ingestservice"
	"linkstream/ingest/verify"
	"linkstream/schema/clickhouse"
	"linkstream/schema/service"
	"linkstream/schema/stream"
	"linkstream/schema/tracing"
)

const usage = `Usage: ingest [flags] [verify | health [ready]]

Ingest counts the clicks that edges produce to Kafka. All ingest processes with the same consumer group share the
partitions of the topic.

With "verify" it only checks that every recorded click is counted, pending, dropped or set aside, while the service runs
or not. With -lanes it also counts what edges have recorded. The exit code is 1 if the clicks do not add up, 2 if that
cannot be seen.

` + service.HealthUsage

func main() { service.Main("ingest", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, topics := ingestservice.DefaultConfig(), stream.DefaultConfig()
	operators := service.OpsConfig{Listen: service.OpsListenIngest}
	database, retention, logs := clickhouse.DefaultConfig(), clickhouse.DefaultRetention(), service.LogConfig{}
	traces := tracing.DefaultConfig()
	var check verify.Config
	command, err := service.ParseArgs("ingest", usage, args, stderr, &cfg, &database, &retention, &topics, &logs,
		&operators, &traces, &check)
	if err != nil {
		return err
	}
	if service.AsksHealth(command) {
		return operators.Health(ctx, command)
	}
	log := logs.Logger(stderr)
	if len(command) > 0 {
		return runCommand(ctx, check, database, topics, command, stdout, log)
	}
	return service.RunLogged(ctx, log, func(ctx context.Context) error {
		return serve(ctx, cfg, database, retention, topics, operators, traces, log)
	})
}

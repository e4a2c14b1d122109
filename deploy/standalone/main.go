// Standalone is linkstream in one process on one machine: SQLite stores links and counted clicks, and the spool is the
// log of clicks that wait to be counted. There is no broker. The services are the same as on several machines; the code
// that decodes, checks, enriches and batches a click is the same code (package count).
//
// # From the spool to the row
//
// The edge's shipper sends each lane of the spool to a count.Writer, with one batch in flight. The writer counts the
// batches of several lanes and the marks of these lanes in one transaction of clicks.db, which SQLite syncs at its
// commit (synchronous=FULL): a sync covers all lanes that have waited. The more clicks a transaction has, the later the
// next one begins: after 0.1 s with few clicks, after
// 0.7 s at most. So there are at most ten per second, and much traffic changes each row less often.
//
// Only after the commit the shipper releases the clicks of the transaction. So at any instant, also after kill -9 or a
// power failure, each click is in the spool or counted, and the mark says which clicks in the spool are counted. A
// click is counted if and only if its number is at or below its lane's mark.
//
// # Changes of links
//
// A change of a link enters the outbox of links.db in its transaction. Before a change of the API is answered, the edge
// reads it there and drops what it has cached; changes of commands, which are other processes, it reads within a
// second. An edge on one machine begins with an empty cache: after kill -9 it serves what is in the store.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"linkstream/api/admin"
	"linkstream/ingest/verify"
	"linkstream/schema/service"
)

const usage = `Usage: standalone [flags] [command]

Without a command it runs the service.

` + service.HealthUsage + "\n"

// usageOfVerify follows the admin commands, which the api has, too.
var usageOfVerify = fmt.Sprintf("  %-26s %s\n", verify.Command, verify.Help)

func main() { service.Main("standalone", run) }

// run runs the services until ctx is done or, with arguments, one admin command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, logs, options, backups := DefaultConfig(), service.LogConfig{}, admin.Config{}, BackupConfig{}
	var check verify.Config
	command, err := service.ParseArgs("standalone", usage+admin.Usage+backupUsage+usageOfVerify, args, stderr, &cfg, &logs,
		&options, &backups, &check)
	if err != nil {
		return err
	}
	if service.AsksHealth(command) {
		return cfg.Ops.Health(ctx, command)
	}
	options.EdgeURL = cfg.EdgeURL
	log := logs.Logger(stderr)
	if err := service.KeepPrivate(cfg.Data, log); err != nil {
		return err
	}
	if isBackupCommand(command) {
		return runBackupCommand(ctx, cfg, backups, command, stdout, log)
	}
	if len(command) == 1 && command[0] == verify.Command {
		return runVerify(ctx, cfg, check, stdout)
	}
	if len(command) > 0 {
		return runCommand(ctx, cfg, options, command, stdout, stderr, log)
	}
	return service.RunLogged(ctx, log, func(ctx context.Context) error { return serve(ctx, cfg, stdout, log) })
}

func serve(ctx context.Context, cfg Config, stdout io.Writer, log *slog.Logger) error {
	sockets, err := service.InheritSockets("edge", "edge-tls", "api")
	if err != nil {
		return err
	}
	cfg.Edge.Listener, cfg.Edge.TLSListener, cfg.API.Listener = sockets["edge"], sockets["edge-tls"], sockets["api"]
	cfg.Edge.Connections.ReserveCPUs()
	app, err := Start(ctx, cfg, stdout, log)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

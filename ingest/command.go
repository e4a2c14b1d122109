package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/stream"
)

// openTimeout bounds how long a command waits for ClickHouse.
const openTimeout = time.Minute

// runCommand runs the command "verify".
func runCommand(ctx context.Context, cfg verify.Config, database clickhouse.Config, topics stream.Config,
	command []string,
	stdout io.Writer, log *slog.Logger) error {
	if len(command) != 1 || command[0] != verify.Command {
		return schema.Errorf(schema.CodeInvalid, "unknown command %q\n\n%s", strings.Join(command, " "), usage)
	}
	client, err := stream.New(topics, log)
	if err != nil {
		return verify.Unknown(err)
	}
	defer client.Close()
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	clicks, err := clickhouse.OpenCurrentClickStore(opening, database)
	if err != nil {
		return verify.Unknown(err)
	}
	sources := verify.Sources{Topic: client, Clicks: clicks, Positions: clicks, Imported: clicks}
	err = verify.RunCommand(ctx, cfg, sources, nil, os.Stdin, stdout)
	return errors.Join(err, clicks.Close())
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"

	"linkstream/edge/edgeservice"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/stream"
)

// runCommand runs the command "drain DIR" or "lanes [DIR]".
func runCommand(
	ctx context.Context, cfg settings, database postgres.Config, topics stream.Config, command []string, stdout io.Writer,
	log *slog.Logger,
) error {
	switch {
	case len(command) == 2 && command[0] == "drain":
		return drain(ctx, cfg, database, topics, command[1], stdout, log)
	case len(command) == 2 && command[0] == "lanes":
		return printLanes(command[1], stdout)
	case len(command) == 1 && command[0] == "lanes":
		return printLanes(cfg.Spool.Dir, stdout)
	}
	return schema.Errorf(schema.CodeInvalid, "unknown command %q\n\n%s", strings.Join(command, " "), usage)
}

func drain(ctx context.Context, cfg settings, database postgres.Config, topics stream.Config, dir string,
	stdout io.Writer, log *slog.Logger) (err error) {
	links, err := postgres.New(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, links.Close()) }()
	client, err := stream.New(topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	cfg.Spool.Dir = dir
	return edgeservice.Drain(ctx, cfg.Spool, client, links, stdout, log)
}

// printLanes prints a schema.SpoolReport as one line of JSON.
func printLanes(dir string, stdout io.Writer) error {
	report, err := spool.Inspect(dir)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(report)
}

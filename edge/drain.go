package main

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"linkstream/edge/edgeservice"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// drain runs the command "drain DIR".
func drain(ctx context.Context, cfg settings, topics stream.Config, command []string, stdout io.Writer, log *slog.Logger) error {
	if len(command) != 2 || command[0] != "drain" {
		return schema.Errorf(schema.CodeInvalid, "unknown command %q\n\n%s", strings.Join(command, " "), usage)
	}
	client, err := stream.New(topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	cfg.Spool.Dir = command[1]
	return edgeservice.Drain(ctx, cfg.Spool, client, stdout, log)
}

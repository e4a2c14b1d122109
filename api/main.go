// Api serves version 1 of the public API and the dashboard, and runs the operator's commands.
package main

import (
	"context"
	"io"

	"linkstream/schema/service"
)

func main() { service.Main("api", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, command, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	log := cfg.logs.Logger(stderr)
	if service.AsksHealth(command) {
		return cfg.ops.Health(ctx, command)
	}
	if len(command) > 0 {
		return runCommand(ctx, cfg, command, stdout, stderr, log)
	}
	return service.RunLogged(ctx, log, func(ctx context.Context) error { return listen(ctx, cfg, stdout, log) })
}

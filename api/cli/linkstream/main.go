// Linkstream uses a linkstream service from a terminal or a script. See package cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"linkstream/api/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

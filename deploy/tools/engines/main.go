// Command engines starts real engines on the loopback interface, prints which ones, and runs a command with their
// addresses in its environment: for example the tests of many packages, which then share the engines. It also installs
// a browser for the tests, if there is none. Without a command, it prints the addresses and runs until Ctrl-C.
//
//	go run ./deploy/tools/engines go test ./schema/...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"linkstream/deploy/tools/engines/testengines"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	data := flag.String("data", "", "`folder` of the engines' data (default a temporary one, removed at the end)")
	flag.Parse()
	err := run(ctx, *data, flag.Args())
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data string, command []string) (err error) {
	if data == "" {
		var remove func() error
		if data, remove, err = testengines.TempFolder(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if len(command) > 0 {
		if err := printChromium(ctx, log); err != nil {
			return err
		}
	}
	engines, err := testengines.OpenAll(ctx, data, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engines.Close()) }()
	for _, e := range engines.Engines() {
		fmt.Fprintln(os.Stderr, e)
	}
	if len(command) > 0 {
		return execute(ctx, command, engines.Environment())
	}
	for _, line := range engines.Environment() {
		fmt.Println(line)
	}
	<-ctx.Done()
	return nil
}

// printChromium prints which browser the command will use.
func printChromium(ctx context.Context, log *slog.Logger) error {
	browser, err := testengines.FindChromium(ctx, log)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stderr, browser)
	return err
}

// execute runs a command to its end. When ctx ends, it sends SIGTERM to the command.
func execute(ctx context.Context, command, environment []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd.Run()
}

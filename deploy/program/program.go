// Package program is what the mains have in common: they run until a signal, wait for engines that are not there yet,
// and exit with a code that says how it went.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"linkstream/deploy/config"
	"linkstream/schema/ops"
	"linkstream/schema/stream"
)

// Main runs a program until it returns or a signal ends ctx, and exits: 0 after a stop that was asked for and
// after -h, 1 after an error.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Parse fills sections from args and the environment, see package config. usage is what -h prints before the flags.
func Parse(name, usage string, args []string, stderr io.Writer, sections ...config.Section) (positional []string, err error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "%s\nFlags, each also read from the environment (-log.level from LINKSTREAM_LOG_LEVEL):\n", usage)
		fs.PrintDefaults()
	}
	return config.Parse(fs, args, sections...)
}

const (
	attemptTimeout = 90 * time.Second // migrations included
	maxPause       = 2 * time.Second
)

// Report hears what a program waits for, and the error of the last attempt, nil before the first one.
type Report func(what string, err error)

// LogTo reports to a log.
func LogTo(log *slog.Logger) Report {
	return func(what string, err error) {
		if err != nil {
			log.Warn("waiting for "+what, "error", err)
		}
	}
}

// Tell reports to a log and to those who ask at port.
func Tell(log *slog.Logger, port *ops.Starting) Report {
	return func(what string, err error) {
		port.Waiting(what, err)
		LogTo(log)(what, err)
	}
}

// Await calls open until it succeeds or ctx is done. So the order in which programs and engines start does not matter:
// whoever is early waits, and says for what.
func Await[T any](ctx context.Context, report Report, what string, open func(context.Context) (T, error)) (T, error) {
	report(what, nil)
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = maxPause
	return backoff.Retry(ctx, func() (T, error) {
		bounded, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		return open(bounded)
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		report(what, err)
	}))
}

// AwaitTopics waits until the topics exist, and creates those that are missing.
func AwaitTopics(ctx context.Context, report Report, client *stream.Client) error {
	_, err := Await(ctx, report, "Kafka", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, client.EnsureTopics(ctx)
	})
	return err
}

// Background runs f beside what follows. stop ends its context and returns when f has.
func Background(ctx context.Context, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

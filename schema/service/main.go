package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// ExitError is an error that ends a program with an exit code other than 1.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// Main calls run with the arguments of the process and exits the process when it returns: with code 0 if there was no
// error or -h was given, otherwise with the error on stderr and code 1, or the ExitError's code. SIGINT and SIGTERM
// cancel ctx. With -version among the arguments it prints the version instead.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if asksVersion(os.Args[1:]) {
		run = func(_ context.Context, _ []string, stdout, _ io.Writer) error { return printVersion(name, stdout) }
	}
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		if _, logged := errors.AsType[*loggedError](err); !logged {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		}
		if exit, ok := errors.AsType[*ExitError](err); ok {
			os.Exit(exit.Code)
		}
		os.Exit(1)
	}
}

// loggedError is an error that the log has, so that Main need not print it.
type loggedError struct{ error }

func (e *loggedError) Unwrap() error { return e.error }

// RunLogged calls run, which serves until ctx is done or something fails. The log says why the program begins to stop,
// and its last line says why it has stopped and how long it ran.
func RunLogged(ctx context.Context, log *slog.Logger, run func(context.Context) error) error {
	began := time.Now()
	ran := func() time.Duration { return time.Since(began).Round(time.Millisecond) }
	announce := sync.OnceFunc(func() { log.Info("stopping", "reason", context.Cause(ctx)) })
	withdraw := context.AfterFunc(ctx, announce)
	err := run(ctx)
	withdraw()
	stopping := ctx.Err() != nil
	if stopping {
		announce() // run may return before AfterFunc has begun, or while it is at it
	}
	switch {
	case err != nil:
		log.Error("stopped", "reason", err, "ran", ran())
		return &loggedError{err}
	case stopping:
		log.Info("stopped", "reason", context.Cause(ctx), "ran", ran())
	default:
		log.Info("stopped", "reason", "done", "ran", ran())
	}
	return nil
}

// ParseArgs is Parse for a program. -h prints usage and the flags to stderr.
func ParseArgs(name, usage string, args []string, stderr io.Writer, sections ...Section) (positional []string,
	err error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	versionFlag(fs)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "%s\nFlags, which can also be set in the environment (-log.level as LINKSTREAM_LOG_LEVEL):\n",
			usage)
		fs.PrintDefaults()
	}
	return Parse(fs, args, sections...)
}

// cpus is read before anything may change GOMAXPROCS.
var cpus = runtime.GOMAXPROCS(0)

// CPUs returns the number of CPUs that the process may use: the value of GOMAXPROCS at the start.
func CPUs() int { return cpus }

const (
	attemptTimeout = 90 * time.Second // long enough for migrations
	maxPause       = 2 * time.Second  // between attempts
)

// WaitReport is called with the name of the engine that a program waits for and the error of the last attempt. The
// error is nil before the first attempt.
type WaitReport func(what string, err error)

// ReportToLog returns a WaitReport that logs each failed attempt.
func ReportToLog(log *slog.Logger) WaitReport {
	return func(what string, err error) {
		if err != nil {
			log.Warn("waiting for "+what, "error", err)
		}
	}
}

// Await calls open until it succeeds, returns a backoff.PermanentError, or ctx is done. It pauses between attempts, for
// up to 2 seconds, and reports each failed attempt. So programs and engines may start in any order.
func Await[T any](ctx context.Context, report WaitReport, what string,
	open func(context.Context) (T, error)) (T, error) {
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

// AwaitOK is Await for a function without a result.
func AwaitOK(ctx context.Context, report WaitReport, what string, try func(context.Context) error) error {
	_, err := Await(ctx, report, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, try(ctx) })
	return err
}

// RunInBackground calls f in a goroutine. stop cancels f's context and waits until f has returned.
func RunInBackground(ctx context.Context, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

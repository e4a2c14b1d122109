package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/api/admin"
	"linkstream/deploy/tools/engines/testengines"
)

// stopTimeout is how long a service may take to stop before it is killed.
const stopTimeout = 30 * time.Second

// runServices runs the three services until ctx is done or one of them ends, and then stops the others.
func runServices(ctx context.Context, data string, e *testengines.All, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := append(sharedEnvironment(os.Environ()),
		"LINKSTREAM_POSTGRES_DSN="+e.Postgres.Addr,
		"LINKSTREAM_KAFKA_BROKERS="+e.Kafka.Addr,
		"LINKSTREAM_CLICKHOUSE_DSN="+e.ClickHouse.Addr,
		"LINKSTREAM_SPOOL_DIR="+filepath.Join(data, "spool"),
	)
	if os.Getenv("LINKSTREAM_BOOTSTRAP_EMAIL") == "" {
		env = append(env, "LINKSTREAM_BOOTSTRAP_EMAIL="+admin.DefaultEmail)
	}
	services, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{"api", "ingest", "edge"} {
		cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(self), name))
		cmd.Env, cmd.Stdout, cmd.Stderr = env, stdout, stderr
		// Ctrl-C must reach this program only, which stops them before the engines
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = stopTimeout
		services.Go(func() error {
			err := cmd.Run()
			if ctx.Err() != nil && cmd.ProcessState != nil && cmd.ProcessState.Success() {
				return nil
			}
			return fmt.Errorf("service %s ended unexpectedly: %v", name, err)
		})
	}
	return services.Wait()
}

// sharedEnvironment returns env without the settings that the three services cannot share, or that this program makes
// itself: each service has its own address for operators, and an engine's address must not come from a file as well.
func sharedEnvironment(env []string) []string {
	own := []string{"LINKSTREAM_OPS_LISTEN=", "LINKSTREAM_POSTGRES_DSN_FILE=", "LINKSTREAM_CLICKHOUSE_DSN_FILE="}
	return slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		return slices.ContainsFunc(own, func(name string) bool { return strings.HasPrefix(variable, name) })
	})
}

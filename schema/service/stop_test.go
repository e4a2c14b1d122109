package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

const stopRole = "stop"

// runUntilStopped is a program that serves until it is stopped, or fails with its argument as the error.
func runUntilStopped(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	log := new(service.LogConfig).Logger(stderr)
	return service.RunLogged(ctx, log, func(ctx context.Context) error {
		if len(args) > 0 {
			return fmt.Errorf("serve: %w", &service.ExitError{Code: 3, Err: errors.New(args[0])})
		}
		fmt.Fprintln(stdout, "serving")
		<-ctx.Done()
		return nil
	})
}

func TestRunLogged(t *testing.T) {
	start := func(t *testing.T, args ...string) (cmd *exec.Cmd, stdout io.Reader, stderr *testkit.Buffer) {
		t.Helper()
		cmd, stderr = exec.CommandContext(t.Context(), os.Args[0], args...), new(testkit.Buffer)
		cmd.Env, cmd.Stderr = append(os.Environ(), roleEnv+"="+stopRole), stderr
		stdout, err := cmd.StdoutPipe()
		testkit.Must(t, err)
		testkit.Must(t, cmd.Start())
		return cmd, stdout, stderr
	}
	isLog := func(t *testing.T, log *testkit.Buffer, patterns ...string) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		testkit.Equal(t, "lines", len(lines), len(patterns))
		for i, pattern := range patterns {
			if !regexp.MustCompile(pattern).MatchString(lines[min(i, len(lines)-1)]) {
				t.Errorf("line %d is %q, want %q", i, lines[i], pattern)
			}
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run("names the signal: "+sig.String(), func(t *testing.T) {
			cmd, stdout, log := start(t)
			_, err := io.ReadFull(stdout, make([]byte, len("serving")))
			testkit.Must(t, err)
			testkit.Must(t, cmd.Process.Signal(sig))
			testkit.Must(t, cmd.Wait())
			reason := fmt.Sprintf(`reason="%s signal received"`, sig)
			isLog(t, log, `level=INFO msg=stopping `+reason, `level=INFO msg=stopped `+reason+` ran=\d`)
		})
	}
	t.Run("names the error, which is not printed again", func(t *testing.T) {
		cmd, _, log := start(t, "the disk is gone")
		err := cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
			t.Errorf("ended with %v, want exit code 3", err)
		}
		isLog(t, log, `level=ERROR msg=stopped reason="serve: the disk is gone" ran=\d`)
	})
}

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"linkstream/deploy/test/launch"
)

// program is a program with its settings. It keeps them, and with them its addresses and its data, over restarts.
type program struct {
	name    string
	base    string          // URL of what it serves to the public, "" if nothing
	ops     string          // URL of what it serves to operators
	args    []string        // flags of each start
	env     []string        // variables of each start
	process *launch.Process // nil when it is down
}

// launch starts the program and returns at once.
func (p *program) launch(t *testing.T) {
	t.Helper()
	p.process = launch.Start(t, launch.Command(launch.Program(t, p.name), p.env, p.args...))
}

// start starts the program and returns when it is ready.
func (p *program) start(t *testing.T) {
	t.Helper()
	p.launch(t)
	p.awaitReady(t)
}

// awaitReady returns when the program is ready.
func (p *program) awaitReady(t *testing.T) {
	t.Helper()
	p.process.AwaitReady(t, p.ops)
}

// kill ends the program by SIGKILL.
func (p *program) kill(t *testing.T) {
	t.Helper()
	p.process.Kill()
	p.process = nil
}

// end sends a signal and requires that the program ends in time and with exit code 0.
func (p *program) end(t *testing.T, sig os.Signal) {
	t.Helper()
	p.process.End(t, sig)
	p.process = nil
}

// command runs the program with args after its own flags to its end, and returns its output.
func (p *program) command(t *testing.T, args ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	path := launch.Program(t, p.name) // may build the programs first
	ctx, cancel := context.WithTimeout(t.Context(), launch.ExitWithin)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append(p.args[:len(p.args):len(p.args)], args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(launch.CleanEnv(), p.env...), &out, &errOut
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("run %s %q: %v\n%s", p.name, args, err, errOut.String())
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linkstream/deploy/testengines"
	"linkstream/schema/testkit"
)

const (
	readyWithin = 5 * time.Minute  // from the start of a program, which may create or migrate its stores
	exitWithin  = testkit.Patience // for an exit after SIGTERM, which TestStopUnderLoad bounds, and for an admin command
	tailLines   = 60               // of a program's output that a failed test prints
)

// moduleRoot is the folder of go.mod, relative to this package.
const moduleRoot = "../.."

// builtFolders are the folders of the programs under test.
var builtFolders = []string{"deploy/standalone", "api", "ingest", "edge"}

var (
	builtDir  string // the folder of the built programs
	buildOnce = sync.OnceValue(build)
)

// build builds the programs without the race detector, which would make SQLite so slow that tests of promised times
// fail. The packages have tests of their own that run with the race detector.
func build() error {
	var err error
	if builtDir, err = os.MkdirTemp("", "linkstream-e2e-"); err != nil {
		return err
	}
	// The go command reuses the result of a test until a file that the test itself has looked at changes. The files
	// that the compiler reads do not count, so look at each.
	tree := os.DirFS(moduleRoot)
	err = walkSources(tree, func(name string) error {
		_, err := fs.Stat(tree, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the module's files: %w", err)
	}
	args := []string{"build", "-o", builtDir + "/"}
	for _, folder := range builtFolders {
		args = append(args, "./"+folder)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = moduleRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %q: %w\n%s", builtFolders, err, out)
	}
	return nil
}

// builtPath returns the path of a built program.
func builtPath(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out tests of the built programs")
	}
	testkit.Must(t, buildOnce())
	return filepath.Join(builtDir, name)
}

// program is a program with its settings. It keeps them, and with them its addresses and its data, over restarts.
type program struct {
	name    string
	base    string   // URL of what it serves to the public, "" if nothing
	ops     string   // URL of what it serves to operators
	args    []string // flags of each start
	env     []string // variables of each start
	process *process // nil when it is down
}

// launch starts the program and returns at once.
func (p *program) launch(t *testing.T) {
	t.Helper()
	p.process = startProcess(t, p.name, p.env, p.args...)
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
	testkit.SucceedsWithin(t, readyWithin, func() error {
		select {
		case <-p.process.exited:
			t.Fatalf("%s ended before it was ready: %v\n%s", p.name, p.process.err, p.process.tail())
		default:
		}
		return ready(p.ops)
	})
}

func ready(base string) error {
	res, err := client.Get(base + "/readyz")
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/readyz: %s", base, res.Status)
	}
	return nil
}

// kill ends the program by SIGKILL.
func (p *program) kill(t *testing.T) {
	t.Helper()
	p.process.signal(t, syscall.SIGKILL)
	<-p.process.exited
	p.process = nil
}

// limitFiles makes writes of the running program fail as on a full disk: those beyond so many bytes of a file.
func (p *program) limitFiles(t *testing.T, bytes uint64) {
	t.Helper()
	testkit.Must(t, testengines.LimitFiles(p.process.cmd.Process.Pid, bytes))
}

// stop ends the program by SIGTERM, see end.
func (p *program) stop(t *testing.T) {
	t.Helper()
	p.end(t, syscall.SIGTERM)
}

// end sends a signal and requires that the program ends in time and with exit code 0.
func (p *program) end(t *testing.T, sig os.Signal) {
	t.Helper()
	p.process.signal(t, sig)
	select {
	case <-p.process.exited:
	case <-time.After(exitWithin):
		t.Fatalf("%s still runs %s after signal %v", p.name, exitWithin, sig)
	}
	if err := p.process.err; err != nil {
		t.Fatalf("after signal %v %s ended with %v, want exit code 0\n%s", sig, p.name, err, p.process.tail())
	}
	p.process = nil
}

// fails starts the program with these flags instead of its own, requires that it ends without a signal and with an exit
// code other than 0, and returns its output.
func (p *program) fails(t *testing.T, args ...string) string {
	t.Helper()
	started := startProcess(t, p.name, p.env, args...)
	select {
	case <-started.exited:
	case <-time.After(exitWithin):
		t.Fatalf("%s still runs after %s", p.name, exitWithin)
	}
	if code := started.cmd.ProcessState.ExitCode(); code <= 0 {
		t.Errorf("exit code %d (%v), want one greater than 0", code, started.err)
	}
	return started.output.String()
}

// command runs the program with args after its own flags to its end, and returns its output.
func (p *program) command(t *testing.T, args ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	path := builtPath(t, p.name) // may build the programs first
	ctx, cancel := context.WithTimeout(t.Context(), exitWithin)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append(p.args[:len(p.args):len(p.args)], args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cleanEnv(), p.env...), &out, &errOut
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("run %s %q: %v\n%s", p.name, args, err, errOut.String())
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// cleanEnv returns the environment without settings of the programs under test.
func cleanEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LINKSTREAM_") {
			env = append(env, v)
		}
	}
	return env
}

// process is one run of a program.
type process struct {
	cmd    *exec.Cmd
	output testkit.Buffer // of stdout and stderr
	exited chan struct{}  // closed when the process has ended
	err    error          // of its end; read it after exited is closed
}

// startProcess starts a program. When the test ends, the program is killed if it still runs, and if the test has failed,
// the last lines of its output are printed.
func startProcess(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(builtPath(t, name), args...), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(cleanEnv(), env...), &p.output, &p.output
	testkit.Must(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("output of %s, process %d:\n%s", name, p.cmd.Process.Pid, p.tail())
		}
	})
	return p
}

func (p *process) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("send %v: %v", sig, err)
	}
}

// tail returns the last lines of the output.
func (p *process) tail() string {
	lines := strings.Split(p.output.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

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
)

const (
	readyWithin = 30 * time.Second // for a start on a busy machine
	exitWithin  = 20 * time.Second // for an exit after SIGTERM, and for an admin command
	tailLines   = 60               // of a program's output that a failed test shows
)

// moduleRoot is where go.mod is, as seen from a test of this package.
const moduleRoot = "../.."

// programs are the folders of what is tested.
var programs = []string{"deploy/standalone", "api", "ingest", "edge"}

var (
	builtDir  string // where the programs are, once built
	buildOnce = sync.OnceValue(build)
)

// build builds the programs. The race detector would make the standalone's SQLite so slow that tests of time fail; the
// packages have tests under the race detector of their own.
func build() error {
	var err error
	if builtDir, err = os.MkdirTemp("", "linkstream-e2e-"); err != nil {
		return err
	}
	// Go caches test results by the files that the test itself has looked at, and not by those of the compiler that it
	// starts. Look at each, so that a changed file is a reason to test again.
	tree := os.DirFS(moduleRoot)
	err = walkSources(tree, func(name string) error {
		_, err := fs.Stat(tree, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the module's files: %w", err)
	}
	args := []string{"build", "-o", builtDir + "/"}
	for _, folder := range programs {
		args = append(args, "./"+folder)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = moduleRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %q: %w\n%s", programs, err, out)
	}
	return nil
}

// program returns the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(builtDir, name)
}

// node is a program with its settings, up or down. It keeps them, and with them its addresses and its data, when it is
// started again.
type node struct {
	program string
	bases   []string // URLs of what it serves
	args    []string // flags of each start
	env     []string // variables of each start
	process *process // nil when it is down
}

// launch starts the program and returns at once.
func (n *node) launch(t *testing.T) {
	t.Helper()
	n.process = startProcess(t, n.program, n.env, n.args...)
}

// start starts the program and returns when it is ready.
func (n *node) start(t *testing.T) {
	t.Helper()
	n.launch(t)
	n.awaitReady(t)
}

// awaitReady returns when all that the program serves is ready.
func (n *node) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, readyWithin, func() error {
		select {
		case <-n.process.exited:
			t.Fatalf("%s ended before it was ready: %v\n%s", n.program, n.process.err, n.process.output.tail())
		default:
		}
		for _, base := range n.bases {
			if err := ready(base); err != nil {
				return err
			}
		}
		return nil
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

// kill ends the program as a power cut would, as far as a process can tell.
func (n *node) kill(t *testing.T) {
	t.Helper()
	n.process.signal(t, syscall.SIGKILL)
	<-n.process.exited
	n.process = nil
}

// stop asks the program to end as a supervisor does.
func (n *node) stop(t *testing.T) {
	t.Helper()
	n.end(t, syscall.SIGTERM)
}

// end sends a signal and requires that the program ends, in time and with exit code 0.
func (n *node) end(t *testing.T, sig os.Signal) {
	t.Helper()
	n.process.signal(t, sig)
	select {
	case <-n.process.exited:
	case <-time.After(exitWithin):
		t.Fatalf("%s still runs %s after signal %v", n.program, exitWithin, sig)
	}
	if err := n.process.err; err != nil {
		t.Fatalf("after signal %v %s ended with %v, want exit code 0\n%s", sig, n.program, err, n.process.output.tail())
	}
	n.process = nil
}

// fails starts the program with these flags instead of its own, requires that it ends by itself with an exit code that
// is not 0, and returns its output.
func (n *node) fails(t *testing.T, args ...string) string {
	t.Helper()
	p := startProcess(t, n.program, n.env, args...)
	select {
	case <-p.exited:
	case <-time.After(exitWithin):
		t.Fatalf("%s still runs after %s", n.program, exitWithin)
	}
	if code := p.cmd.ProcessState.ExitCode(); code <= 0 {
		t.Errorf("exit code %d (%v), want one that is greater than 0", code, p.err)
	}
	return p.output.String()
}

// command runs the program to its end, with args behind its flags, and returns what it printed.
func (n *node) command(t *testing.T, args ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	binary := program(t, n.program) // may build it, which exitWithin is not for
	ctx, cancel := context.WithTimeout(t.Context(), exitWithin)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, append(n.args[:len(n.args):len(n.args)], args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cleanEnv(), n.env...), &out, &errOut
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("run %s %q: %v\n%s", n.program, args, err, errOut.String())
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// cleanEnv is the environment without settings of the programs under test.
func cleanEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LINKSTREAM_") {
			env = append(env, v)
		}
	}
	return env
}

// process is a started program.
type process struct {
	cmd    *exec.Cmd
	output *output
	exited chan struct{} // closed when the process has ended
	err    error         // of its end; to be read after exited
}

// startProcess starts a program, which is killed at last when the test ends. A test that failed shows the last lines
// of its output.
func startProcess(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program(t, name), args...), output: new(output), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(cleanEnv(), env...), p.output, p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("output of %s, process %d:\n%s", name, p.cmd.Process.Pid, p.output.tail())
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

// output keeps what a process prints. It may be read while the process runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) tail() string {
	lines := strings.Split(o.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// Package e2e_test tests the built programs from outside: what the documents promise is asked of running processes
// over the network, and nothing is known of their code.
package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	readyWithin = 30 * time.Second // for a start on a busy machine
	exitWithin  = 20 * time.Second // for an exit after SIGTERM, and for an admin command
	tailLines   = 60               // of a program's output that a failed test shows
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{m}) }

// suite removes the program that the tests have built before goleak looks.
type suite struct{ *testing.M }

func (s suite) Run() int {
	code := s.M.Run()
	os.RemoveAll(filepath.Dir(builtPath))
	return code
}

// moduleRoot is where go.mod is, as seen from a test of this package.
const moduleRoot = "../.."

var (
	builtPath string // where the program is, once built
	buildOnce = sync.OnceValue(build)
)

// build builds deploy/standalone. The race detector would make its SQLite so slow that tests of time fail; the
// packages have tests under the race detector of their own.
func build() error {
	dir, err := os.MkdirTemp("", "linkstream-e2e-")
	if err != nil {
		return err
	}
	builtPath = filepath.Join(dir, "standalone")
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
	cmd := exec.Command("go", "build", "-o", builtPath, "./deploy/standalone")
	cmd.Dir = moduleRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build deploy/standalone: %w\n%s", err, out)
	}
	return nil
}

// program returns the path of the built program.
func program(t *testing.T) string {
	t.Helper()
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	return builtPath
}

// system is a linkstream with its data, up or down. It keeps its addresses and its data when it is started again.
type system struct {
	edge, api, ingest string // base URLs
	data              string // folder

	// The first account, preset by the environment.
	email, password, token string

	args    []string // flags beyond those that every start has
	env     []string // variables of its starts
	process *process // nil when it is down
}

// newSystem returns a system that has not been started.
func newSystem(t *testing.T, args ...string) *system {
	t.Helper()
	s := &system{
		edge: "http://" + freeAddress(t), api: "http://" + freeAddress(t), ingest: "http://" + freeAddress(t),
		data: filepath.Join(t.TempDir(), "data"), args: args,
		email: "owner@example.com", password: rand.Text(), token: "ls_" + rand.Text() + rand.Text(),
	}
	s.env = []string{"LINKSTREAM_BOOTSTRAP_EMAIL=" + s.email, "LINKSTREAM_BOOTSTRAP_PASSWORD=" + s.password,
		"LINKSTREAM_BOOTSTRAP_TOKEN=" + s.token}
	return s
}

// startSystem returns a new system that is ready.
func startSystem(t *testing.T, args ...string) *system {
	t.Helper()
	s := newSystem(t, args...)
	s.start(t)
	return s
}

// flags are what each start of the service is given.
func (s *system) flags() []string {
	return append([]string{"-data", s.data, "-edge.listen", address(s.edge), "-api.listen", address(s.api),
		"-ingest.listen", address(s.ingest), "-edge.url", s.edge}, s.args...)
}

// launch starts the service and returns at once.
func (s *system) launch(t *testing.T) {
	t.Helper()
	s.process = startProcess(t, s.env, s.flags()...)
}

// start starts the service and returns when all of it is ready.
func (s *system) start(t *testing.T) {
	t.Helper()
	s.launch(t)
	eventually(t, readyWithin, func() error {
		select {
		case <-s.process.exited:
			t.Fatalf("the service ended before it was ready: %v\n%s", s.process.err, s.process.output.tail())
		default:
		}
		for _, base := range []string{s.edge, s.api, s.ingest} {
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

// kill ends the service as a power cut would, as far as a process can tell.
func (s *system) kill(t *testing.T) {
	t.Helper()
	s.process.signal(t, syscall.SIGKILL)
	<-s.process.exited
	s.process = nil
}

// stop asks the service to end as a supervisor does.
func (s *system) stop(t *testing.T) {
	t.Helper()
	s.end(t, syscall.SIGTERM)
}

// end sends a signal and requires that the service ends, in time and with exit code 0.
func (s *system) end(t *testing.T, sig os.Signal) {
	t.Helper()
	s.process.signal(t, sig)
	select {
	case <-s.process.exited:
	case <-time.After(exitWithin):
		t.Fatalf("the service still runs %s after signal %v", exitWithin, sig)
	}
	if err := s.process.err; err != nil {
		t.Fatalf("after signal %v the service ended with %v, want exit code 0\n%s", sig, err, s.process.output.tail())
	}
	s.process = nil
}

// admin runs an admin command on the system's data, requires that it succeeds, and returns its one line of output.
func (s *system) admin(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := runProgram(t, append([]string{"-data", s.data}, args...)...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, want 0\nstdout: %s\nstderr: %s", args, code, out, errOut)
	}
	return strings.TrimSuffix(out, "\n")
}

// runProgram runs the program to its end and returns what it printed.
func runProgram(t *testing.T, args ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), exitWithin)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, program(t), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = cleanEnv(), &out, &errOut
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("run %q: %v\n%s", args, err, errOut.String())
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

// startProcess starts the program, which is killed at last when the test ends. A test that failed shows the last lines
// of its output.
func startProcess(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program(t), args...), output: new(output), exited: make(chan struct{})}
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
			t.Logf("output of process %d:\n%s", p.cmd.Process.Pid, p.output.tail())
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

// freeAddress returns a loopback address that nothing listens on. Its port is below those that Linux gives to
// outgoing connections: while the service is down, one of them could take the port, even connect to itself on it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+mathrand.IntN(22000)))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("found no free port")
	return ""
}

// address returns the host:port of a base URL.
func address(base string) string { return strings.TrimPrefix(base, "http://") }

// eventually calls ok until it returns nil, and fails the test with its last error when the time is up.
func eventually(t *testing.T, within time.Duration, ok func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); ; <-tick.C {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still so after %s: %v", within, err)
		}
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

package launch

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

const (
	// ReadyWithin is how long a program may take to start: it may create or migrate its stores.
	ReadyWithin = 5 * time.Minute
	// ExitWithin is how long a program may take to end after SIGTERM.
	ExitWithin = testkit.Patience

	tailLines = 60 // of a program's output that a failed test prints
)

// Process is one run of a program.
type Process struct {
	Cmd    *exec.Cmd
	Output testkit.Buffer // of stdout and stderr
	Exited chan struct{}  // closed when the process has ended
	Err    error          // of its end; read it after Exited is closed
}

// Command returns a command for Start. Its environment is that of the test without settings of linkstream, and env.
func Command(path string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Env = append(CleanEnv(), env...)
	return cmd
}

// CleanEnv returns the environment of the test without settings of linkstream.
func CleanEnv() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LINKSTREAM_") {
			env = append(env, v)
		}
	}
	return env
}

// Start starts a command, and collects its output.
func Start(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{Cmd: cmd, Exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.Output, &p.Output
	testkit.Must(tb, cmd.Start())
	go func() {
		p.Err = cmd.Wait()
		close(p.Exited)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("output of %s, process %d:\n%s", p.name(), cmd.Process.Pid, p.Tail())
		}
	})
	return p
}

func (p *Process) name() string { return filepath.Base(p.Cmd.Path) }

// Signal sends a signal to the running process.
func (p *Process) Signal(tb testing.TB, sig os.Signal) {
	tb.Helper()
	if err := p.Cmd.Process.Signal(sig); err != nil {
		tb.Fatalf("send %v to %s: %v", sig, p.name(), err)
	}
}

// Kill ends the process by SIGKILL, unless it has ended.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // fails if it has ended
	<-p.Exited
}

// Wait returns the error of the process's end, which must come in time.
func (p *Process) Wait(tb testing.TB) error {
	tb.Helper()
	select {
	case <-p.Exited:
	case <-time.After(ExitWithin):
		tb.Fatalf("%s still runs after %v\n%s", p.name(), ExitWithin, p.Tail())
	}
	return p.Err
}

// End sends a signal and requires that the process ends in time and with exit code 0.
func (p *Process) End(tb testing.TB, sig os.Signal) {
	tb.Helper()
	p.Signal(tb, sig)
	if err := p.Wait(tb); err != nil {
		tb.Fatalf("after signal %v %s ended with %v, want exit code 0\n%s", sig, p.name(), err, p.Tail())
	}
}

// Stop ends the process by SIGTERM, see End.
func (p *Process) Stop(tb testing.TB) {
	tb.Helper()
	p.End(tb, syscall.SIGTERM)
}

// Tail returns the last lines of the output.
func (p *Process) Tail() string {
	lines := strings.Split(p.Output.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// AwaitReady returns when the program, which serves operators at ops, a base URL, is ready. It must not end before.
func (p *Process) AwaitReady(tb testing.TB, ops string) {
	tb.Helper()
	testkit.SucceedsWithin(tb, ReadyWithin, func() error {
		select {
		case <-p.Exited:
			tb.Fatalf("%s ended before it was ready: %v\n%s", p.name(), p.Err, p.Tail())
		default:
		}
		_, err := Get(ops + "/readyz")
		return err
	})
}

// Metric returns the value of a metric of the program that serves operators at ops, a base URL. The program must have
// it.
func Metric(tb testing.TB, ops, name string) float64 {
	tb.Helper()
	value, err := TryMetric(ops, name)
	testkit.Must(tb, err)
	return value
}

// TryMetric is Metric for a program that may be away.
func TryMetric(ops, name string) (float64, error) {
	text, err := Get(ops + "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("%s has no metric %s", ops, name)
}

// client neither follows redirects nor keeps connections open, so it never repeats a request.
var client = &http.Client{
	Timeout:       testkit.Patience,
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Get returns the body of an answer with status 200.
func Get(url string) (body string, err error) {
	res, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.500s", url, res.Status, text)
	}
	return string(text), err
}

// Package acme_test gets certificates from pebble, Let's Encrypt's test authority: two edges on one Postgres, and standalone on
// embedded engines, as built programs. The authority reaches the edges through forwarders, which hand each of its connections to
// another edge, so that the edge that asks for a certificate is not the one that answers for it.
//
// The tests install pebble, build programs and wait for certificates to expire, so make test-deploy runs them and make test does not.
package acme_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema/testkit"
)

var engines enginetest.Engines

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(suite{engines.Of(m)},
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// suite runs the tests and then removes the built programs.
type suite struct{ tests interface{ Run() int } }

func (s suite) Run() int {
	code := s.tests.Run()
	os.RemoveAll(builtDir)
	return code
}

// builtDir has the built programs.
var builtDir = filepath.Join(os.TempDir(), fmt.Sprintf("linkstream-acme-%d", os.Getpid()))

var build = sync.OnceValue(func() error {
	if err := os.MkdirAll(builtDir, 0o700); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", builtDir+"/", "./edge", "./deploy/standalone")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// program returns the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	testkit.Must(t, build())
	return filepath.Join(builtDir, name)
}

// process is a program that runs until the test ends.
type process struct {
	cmd    *exec.Cmd
	output testkit.Buffer
	exited chan struct{}
}

func start(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	testkit.Must(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(name), p.output.String())
		}
	})
	return p
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.exited
}

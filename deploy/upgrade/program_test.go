package upgrade_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

const (
	moduleRoot = "../.."
	exitWithin = testkit.Patience // for an exit after SIGTERM
)

// programs are the folders of the programs, in the release and in this source.
var programs = []string{"./edge", "./ingest", "./api", "./deploy/standalone"}

// builtDir has a folder of programs per version.
var builtDir = filepath.Join(os.TempDir(), fmt.Sprintf("linkstream-upgrade-%d", os.Getpid()))

// version is a set of built programs.
type version struct {
	dir string
	old bool // operators' endpoints are on the public ports, and those of ingest at -ingest.listen
}

var built struct {
	sync.Mutex
	versions map[string]version
}

// newPrograms returns the programs of this source.
func newPrograms(t *testing.T) version {
	t.Helper()
	return build(t, "new", func() string { return moduleRoot }, "./deploy/migrate-to")
}

// oldPrograms returns the programs of the release, whose source is in testdata.
func oldPrograms(t *testing.T) version {
	t.Helper()
	v := build(t, release, func() string {
		dir := filepath.Join(t.TempDir(), "source")
		writeFiles(t, dir, readArchive(t, fixture(release, "source.tar.zst")))
		return dir
	})
	v.old = true
	return v
}

// build builds the programs, and more of them, once. source returns the folder of the module.
func build(t *testing.T, name string, source func() string, more ...string) version {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	v, ok := built.versions[name]
	if !ok {
		v = version{dir: filepath.Join(builtDir, name)}
		testkit.Must(t, os.MkdirAll(v.dir, 0o700))
		// Without the folder's path the go command can use what it has compiled in another folder.
		cmd := exec.Command("go", append([]string{"build", "-trimpath", "-buildvcs=false", "-o", v.dir + "/"}, append(more, programs...)...)...)
		cmd.Dir, cmd.Env = source(), append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
		if built.versions == nil {
			built.versions = map[string]version{}
		}
		built.versions[name] = v
	}
	return v
}

// program is a program that keeps its addresses and its data over restarts, also by another version.
type program struct {
	service string
	public  []string          // host:port of its public listeners
	ops     string            // host:port for operators
	env     map[string]string // without the prefix LINKSTREAM_
	version version           // of the last start
	process *process          // nil while it is down
}

// process is one run of a program.
type process struct {
	cmd    *exec.Cmd
	output testkit.Buffer
	exited chan struct{}
	err    error // of its end; read it after exited is closed
}

// launch starts the program and returns at once. When the test ends, it is killed if it still runs. settings are more
// variables of this start.
func (p *program) launch(t *testing.T, v version, settings map[string]string) {
	t.Helper()
	env := maps.Clone(p.env)
	maps.Copy(env, settings)
	env["OPS_LISTEN"] = p.ops
	if v.old {
		delete(env, "OPS_LISTEN")
		env["INGEST_LISTEN"] = p.ops
	}
	run := &process{cmd: exec.Command(filepath.Join(v.dir, p.service)), exited: make(chan struct{})}
	run.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LINKSTREAM_") })
	for name, value := range env {
		run.cmd.Env = append(run.cmd.Env, "LINKSTREAM_"+name+"="+value)
	}
	run.cmd.Stdout, run.cmd.Stderr = &run.output, &run.output
	testkit.Must(t, run.cmd.Start())
	go func() {
		run.err = run.cmd.Wait()
		close(run.exited)
	}()
	t.Cleanup(func() {
		_ = run.cmd.Process.Kill() // fails if it has ended
		<-run.exited
		if t.Failed() {
			t.Logf("output of %s in %s:\n%s", p.service, v.dir, run.output.String())
		}
	})
	p.version, p.process = v, run
}

// start starts the program and returns when it is ready.
func (p *program) start(t *testing.T, v version) {
	t.Helper()
	p.launch(t, v, nil)
	p.awaitReady(t)
}

// awaitReady returns when the program is ready.
func (p *program) awaitReady(t *testing.T) {
	t.Helper()
	for _, port := range p.readyPorts() {
		testkit.Succeeds(t, func() error {
			select {
			case <-p.process.exited:
				t.Fatalf("%s ended before it was ready: %v\n%s", p.service, p.process.err, p.process.output.String())
			default:
			}
			_, err := get("http://"+port+"/readyz", "")
			return err
		})
	}
}

// stop ends the program by SIGTERM and requires exit code 0.
func (p *program) stop(t *testing.T) {
	t.Helper()
	testkit.Must(t, p.process.cmd.Process.Signal(syscall.SIGTERM))
	if err := p.awaitExit(t); err != nil {
		t.Fatalf("%s ended with %v\n%s", p.service, err, p.process.output.String())
	}
	p.process = nil
}

// kill ends the program by SIGKILL.
func (p *program) kill(t *testing.T) {
	t.Helper()
	testkit.Must(t, p.process.cmd.Process.Kill())
	<-p.process.exited
	p.process = nil
}

func (p *program) awaitExit(t *testing.T) error {
	t.Helper()
	select {
	case <-p.process.exited:
		return p.process.err
	case <-time.After(exitWithin):
		t.Fatalf("%s still runs after %v", p.service, exitWithin)
		return nil
	}
}

// wantRefusal starts a version of the program that must not run on the present data, and requires that it says why. The
// standalone program ends; services wait until the data is another.
func (p *program) wantRefusal(t *testing.T, v version) {
	t.Helper()
	p.launch(t, v, nil)
	testkit.Eventually(t, p.service+" says that the schema is newer", func() bool {
		return p.process.output.Contains("made by a newer linkstream")
	})
	if p.service == "standalone" {
		err := p.awaitExit(t)
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() < 1 {
			t.Errorf("%s ended with %v, want an exit code above 0", p.service, err)
		}
		p.process = nil
		return
	}
	if _, err := get("http://"+p.readyPorts()[0]+"/readyz", ""); err == nil {
		t.Errorf("%s is ready on a newer schema", p.service)
	}
	p.kill(t)
}

// readyPorts returns the addresses that answer whether the program is ready.
func (p *program) readyPorts() []string {
	switch {
	case p.version.old && p.service == "standalone":
		return append([]string{p.ops}, p.public...)
	case p.version.old && p.service != "ingest":
		return p.public
	}
	return []string{p.ops}
}

// metric returns the sum of a metric, which the program must have.
func (p *program) metric(t *testing.T, name string) (value float64) {
	t.Helper()
	port := p.ops
	if p.version.old && p.service != "ingest" {
		port = p.public[0]
	}
	body, err := get("http://"+port+"/metrics", "")
	testkit.Must(t, err)
	for line := range strings.Lines(string(body)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			testkit.Must(t, err)
			return value
		}
	}
	t.Fatalf("%s has no metric %s", p.service, name)
	return 0
}

// client neither follows redirects nor keeps connections open, so it never repeats a request.
var client = &http.Client{
	Timeout:       testkit.Patience,
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// get returns the body of an answer with status 200.
func get(url, token string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.500s", url, res.Status, body)
	}
	return body, err
}

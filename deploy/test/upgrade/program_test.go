//go:build deploy

package upgrade_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// version is a set of built programs: the folder that they are in.
type version string

// newPrograms returns the programs of this source.
func newPrograms(t *testing.T) version {
	t.Helper()
	for _, folder := range launch.Programs {
		launch.Program(t, path.Base(folder))
	}
	return version(filepath.Dir(launch.Program(t, "edge")))
}

var older struct {
	sync.Mutex
	built map[string]version // by release
}

// olderPrograms returns the programs of a release, whose source is in testdata.
func olderPrograms(t *testing.T, release string) version {
	t.Helper()
	older.Lock()
	defer older.Unlock()
	if built, ok := older.built[release]; ok {
		return built
	}
	source := t.TempDir()
	writeFiles(t, source, readArchive(t, filepath.Join(fixtures, release, "source.tar.zst")))
	if older.built == nil {
		older.built = map[string]version{}
	}
	older.built[release] = build(t, source)
	return older.built[release]
}

// build builds the programs of a source into a folder that TestMain removes.
func build(t *testing.T, source string) version {
	t.Helper()
	into, err := os.MkdirTemp(builtDir, "")
	testkit.Must(t, err)
	// The go command reuses what it compiled in a folder of another name.
	testkit.Must(t, launch.Build(source, into, slices.Concat([]string{"-trimpath"}, launch.Programs)...))
	return version(into)
}

// program is a program that keeps its addresses and its data over restarts, also by another version.
type program struct {
	service string
	public  []string          // host:port of its public listeners
	ops     string            // host:port for operators
	env     map[string]string // without the prefix LINKSTREAM_
	version version           // of the last start
	process *launch.Process   // nil while it is down
}

// launch starts the program and returns at once. When the test ends, it is killed if it still runs. settings are more
// variables of this start.
func (p *program) launch(t *testing.T, v version, settings map[string]string) {
	t.Helper()
	all := maps.Clone(p.env)
	maps.Copy(all, settings)
	all["OPS_LISTEN"] = p.ops
	var env []string
	for name, value := range all {
		env = append(env, "LINKSTREAM_"+name+"="+value)
	}
	p.version, p.process = v, launch.Start(t, launch.Command(filepath.Join(string(v), p.service), env))
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
	p.process.AwaitReady(t, "http://"+p.ops)
}

// stop ends the program by SIGTERM and requires exit code 0.
func (p *program) stop(t *testing.T) {
	t.Helper()
	p.process.Stop(t)
	p.process = nil
}

// kill ends the program by SIGKILL.
func (p *program) kill(t *testing.T) {
	t.Helper()
	p.process.Kill()
	p.process = nil
}

// metric returns a metric, which the program must have.
func (p *program) metric(t *testing.T, name string) float64 {
	t.Helper()
	return launch.Metric(t, "http://"+p.ops, name)
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

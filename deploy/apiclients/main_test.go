// Package apiclients_test tests the API's description, api/rest/openapi.json, with the tools of those who use it: generators of
// clients, a linter and a generator of requests. The clients are compiled and call the running program.
//
// The tools are installed by the machine's package clients, in the versions that testdata/tools and testdata/go list. The
// tests take minutes, so make test-deploy runs them and make test does not.
package apiclients_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/testengines"
	"linkstream/schema/testkit"
)

const (
	moduleRoot  = "../.."
	description = "../../api/rest/openapi.json"
	tools       = "testdata/tools"
	token       = "ls_apiclients0apiclients0apiclients0apiclients0apiclients"
)

// The folders of installed tools. Each is installed when a test first asks for it.

func npm(t *testing.T) (modules string) {
	return installed(t)(testengines.NPMPackages(t.Context(), logger(t), tools))
}

func python(t *testing.T) (interpreter string) {
	return installed(t)(testengines.PythonPackages(t.Context(), logger(t), filepath.Join(tools, "requirements.txt")))
}

func maven(t *testing.T) (libs string) {
	return installed(t)(testengines.MavenLibraries(t.Context(), logger(t), filepath.Join(tools, "pom.xml")))
}

func installed(t *testing.T) func(path string, err error) string {
	return func(path string, err error) string {
		t.Helper()
		testkit.Must(t, err)
		return path
	}
}

func logger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// run runs a program to its end and returns what it prints to stdout. It must succeed.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// absolute returns the absolute form of a path.
func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	testkit.Must(t, err)
	return path
}

// service is a running standalone program with one account.
type service struct{ edge, api string } // base URLs

// start builds and starts the program. It knows one unsafe host, unsafe.example.com.
func start(t *testing.T) service {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "standalone")
	run(t, moduleRoot, nil, "go", "build", "-o", program, "./deploy/standalone")
	blocklist := filepath.Join(dir, "blocklist")
	testkit.Must(t, os.WriteFile(blocklist, []byte("0.0.0.0 unsafe.example.com\n"), 0o600))
	edge, api, ops := testkit.FreeAddress(t), testkit.FreeAddress(t), testkit.FreeAddress(t)

	var output testkit.Buffer
	cmd := exec.Command(program, "-data", filepath.Join(dir, "data"), "-edge.listen", edge, "-api.listen", api,
		"-ops.listen", ops, "-api.blocklist", blocklist)
	cmd.Env = append(os.Environ(), "LINKSTREAM_BOOTSTRAP_TOKEN="+token)
	cmd.Stdout, cmd.Stderr = &output, &output
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("the program ended, error %v:\n%s", err, output.String())
		}
	})
	testkit.Succeeds(t, func() error { return answers("http://" + ops + "/readyz") })
	return service{edge: "http://" + edge, api: "http://" + api}
}

func answers(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// click creates the link "clicked" and follows it once, with Firefox on a desktop. It returns when the click is counted.
func (s service) click(t *testing.T) {
	t.Helper()
	status, body := s.call(t, http.MethodPost, "/api/v1/shorten", `{"long_url": "https://example.com/", "custom_alias": "clicked"}`)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.edge+"/clicked", nil)
	testkit.Must(t, err)
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0")
	resp, err := http.DefaultTransport.RoundTrip(req)
	testkit.Must(t, err)
	resp.Body.Close()
	testkit.Eventually(t, "the click is counted", func() bool {
		_, body := s.call(t, http.MethodGet, "/api/v1/stats/clicked", "")
		return strings.Contains(body, `"total_clicks":1`)
	})
}

func (s service) call(t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.api+path, strings.NewReader(body))
	testkit.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(req)
	testkit.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	return resp.StatusCode, string(text)
}

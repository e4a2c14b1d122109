// Package main_test runs the built program: that each scenario runs and its checks hold, not how fast anything is.
package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
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

	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/deploy/testengines"
)

const (
	moduleRoot = ".."
	patience   = 3 * time.Minute // for one run on a busy machine, engines included
)

var (
	programs  string // folder of the built programs
	buildOnce = sync.OnceValue(build)
)

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(programs)
	os.Exit(code)
}

// build builds the programs without the race detector, which would measure itself.
func build() (err error) {
	if programs, err = os.MkdirTemp("", "linkstream-bench-test-"); err != nil {
		return err
	}
	// Go caches test results by the files that the test itself has looked at, and not by those of the compiler that it
	// starts. Look at each, so that a changed file is a reason to test again.
	tree := os.DirFS(moduleRoot)
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(name) == ".go" {
			_, err = fs.Stat(tree, name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the module's files: %w", err)
	}
	cmd := exec.Command("go", "build", "-o", programs+"/", "./bench", "./deploy/standalone")
	cmd.Dir = moduleRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// program returns the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(programs, name)
}

// bench runs the program.
func bench(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "bench"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it stops its own children
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// measure runs a scenario for about a second and returns its report.
func measure(t *testing.T, args ...string) *report.Report {
	t.Helper()
	dir := t.TempDir()
	path, page := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")
	args = append(args, "-rounds=1", "-round=200ms", "-duration=400ms", "-links=200", "-clicks=20000", "-conns=8",
		"-json", path, "-html", page)
	out, errOut, err := bench(t, args...)
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", args, err, errOut, out)
	}
	r, err := report.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("<figure>")) {
		t.Errorf("page of %d bytes, error %v", len(html), err)
	}
	if len(r.Checks) == 0 || r.Failed() != nil {
		t.Errorf("checks %+v", r.Checks)
	}
	for _, m := range r.Metrics {
		if len(m.Samples) != 1 || !(m.Samples[0] > 0) || math.IsInf(m.Samples[0], 0) {
			t.Errorf("%s: %v", m.Name, m.Samples)
		}
		if !strings.Contains(out, m.Name) {
			t.Errorf("%s is not in the table\n%s", m.Name, out)
		}
	}
	return r
}

func wantMetrics(t *testing.T, r *report.Report, names ...string) {
	t.Helper()
	for _, name := range names {
		if len(r.Metric(name).Samples) == 0 {
			t.Errorf("no metric %q in %+v", name, r.Metrics)
		}
	}
}

func TestScenarios(t *testing.T) {
	for scenario, metrics := range map[string][]string{
		"redirect": {"redirects/s at most: standalone", "CPU of a redirect: edge, spooling / bare fasthttp",
			"CPU of a redirect: edge, shipping (broker)", "CPU of a redirect, open loop: standalone / bare fasthttp",
			"latency p99.9 of a redirect, open loop: standalone", "resident memory: edge, spooling"},
		"pipeline": {"counted clicks/s at most: worker", "CPU of a counted click: worker / bare kafka-go fetch",
			"CPU of a shipped click: shipper / bare kafka-go produce"},
		"soak":      {"from the last redirect until all is done: standalone", "resident memory, open loop: standalone"},
		"freshness": {"freshness p50", "freshness p99"},
		"memory":    {"resident memory: edge, shipping (edge)", "CPU of a redirect: edge, shipping (edge)"},
		"shorten": {"links/s at most: standalone", "CPU of a link: standalone / bare SQLite insert",
			"latency p99 of a link, open loop: standalone"},
		"stats": {"CPU of a stats call: most popular link / any link", "latency p99 of a stats call, open loop: any link"},
		"links": {"CPU of a list call: page 10 / page 1", "latency p99 of a list call, open loop: page 10"},
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			wantMetrics(t, measure(t, scenario, "-start"), metrics...)
		})
	}
	t.Run("on real engines", func(t *testing.T) {
		requireEngines(t)
		wantMetrics(t, measure(t, "pipeline", "-start", "-engines=real"), "counted clicks/s at most: worker",
			"CPU of a counted click: worker / bare clickhouse-go insert")
		wantMetrics(t, measure(t, "redirect", "-start", "-engines=real"), "CPU of a redirect: services / bare fasthttp")
	})
	t.Run("redirect of a service that runs already", func(t *testing.T) {
		t.Parallel()
		edge, api, token := startService(t)
		r := measure(t, "redirect", "-edge", edge, "-api", api, "-token", token)
		wantMetrics(t, r, "redirects/s at most: running service", "latency p99 of a redirect, open loop: running service")
		if strings.Contains(r.Command, token) || strings.Contains(r.Command, api) {
			t.Errorf("the report tells secrets or addresses: %s", r.Command)
		}
	})
}

// requireEngines ends the test if this machine cannot start engines of a run's own: those that the environment leads to are
// not for bench.
func requireEngines(t *testing.T) {
	t.Helper()
	for _, name := range []string{testengines.PostgresEnv, testengines.KafkaEnv, testengines.ClickHouseEnv, testengines.ClickHouseHTTPEnv} {
		t.Setenv(name, "")
	}
	all, err := testengines.StartAll(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler))
	if err == nil {
		err = all.Close()
	}
	switch {
	case err == nil:
	case os.Getenv(testengines.RequireEnv) == "1":
		t.Fatal(err)
	default:
		fmt.Fprintf(os.Stderr, "\n*** NOT TESTED: %s: %v\n\n", t.Name(), err)
		t.Skip(err)
	}
}

// startService starts a service of which bench knows no more than addresses and a token.
func startService(t *testing.T) (edge, api, token string) {
	t.Helper()
	var urls, addrs []string
	var listeners []net.Listener
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, listener)
		addrs, urls = append(addrs, listener.Addr().String()), append(urls, "http://"+listener.Addr().String())
	}
	for _, l := range listeners { // once all are found: no two are the same
		l.Close()
	}
	token = "ls_" + rand.Text() + rand.Text()
	child, err := proc.Start(filepath.Join(t.TempDir(), "log"), []string{"LINKSTREAM_BOOTSTRAP_TOKEN=" + token},
		program(t, "standalone"), "-data", filepath.Join(t.TempDir(), "data"), "-edge.listen", addrs[0], "-api.listen", addrs[1],
		"-ingest.listen", addrs[2])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, url := range urls {
		err := child.Await(ctx, func(ctx context.Context) error {
			res, err := http.Get(url + "/readyz")
			if err != nil {
				return err
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("status %s", res.Status)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return urls[0], urls[1], token
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd := exec.Command(program(t, "bench"), "redirect", "-start", "-links=10")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	timeout := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timeout.Stop()
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if strings.Contains(lines.Text(), "round 0") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit code 1", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

func TestReports(t *testing.T) {
	dir := t.TempDir()
	for i, cpu := range []float64{10, 5} {
		r := report.Report{Scenario: "redirect"}
		for round := range 5 {
			r.Add("CPU of a redirect", "µs", report.Lower, cpu+float64(round)/10)
		}
		if err := r.Save(filepath.Join(dir, fmt.Sprint(i, ".json"))); err != nil {
			t.Fatal(err)
		}
	}
	out, errOut, err := bench(t, "-compare", filepath.Join(dir, "0.json"), filepath.Join(dir, "1.json"))
	if err != nil || !strings.Contains(out, "better  CPU of a redirect (µs)") {
		t.Errorf("error %v\n%s%s", err, errOut, out)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no scenario":             {nil, "name one scenario"},
		"an unknown scenario":     {[]string{"speed"}, "name one scenario"},
		"a target elsewhere":      {[]string{"redirect", "-edge", "http://192.0.2.1:80"}, "-i-own-this-target"},
		"a target by name":        {[]string{"redirect", "-api", "http://linkstream.example:80"}, "-i-own-this-target"},
		"a target that is no URL": {[]string{"redirect", "-api", "127.0.0.1:8081"}, "-api"},
		"a target with TLS":       {[]string{"redirect", "-edge", "https://127.0.0.1:443"}, "-edge"},
		"no token":                {[]string{"redirect"}, "-token"},
		"too many links":          {[]string{"redirect", "-start", "-links=10000001"}, "-links"},
		"a run without end":       {[]string{"redirect", "-start", "-duration=100h", "-conns=0"}, "-duration"},
		"one report to compare":   {[]string{"-compare", "old.json"}, "name two reports"},
		"no such report":          {[]string{"-compare", "/no/such/old.json", "/no/such/new.json"}, "/no/such/old.json"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := bench(t, c.args...)
			if err == nil || !strings.Contains(errOut, c.want) {
				t.Errorf("error %v, %q is not in\n%s%s", err, c.want, errOut, out)
			}
		})
	}
}

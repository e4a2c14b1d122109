// Package main_test runs the built program. It tests that each scenario runs and that its checks hold, not how fast
// anything is.
package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

const (
	moduleRoot = ".."
	patience   = 3 * time.Minute // for one run on a busy machine

	minParallel = 4
)

var (
	engines enginetest.Engines
	// buildOnce builds the programs into a new directory and returns it.
	buildOnce = sync.OnceValues(build)
)

func TestMain(m *testing.M) {
	flag.Parse()
	if runtime.GOMAXPROCS(0) < minParallel { // the tests spend half of their time waiting for processes to start
		flag.Set("test.parallel", fmt.Sprint(minParallel))
	}
	code := engines.Of(m).Run()
	if testing.Short() {
		os.Exit(code)
	}
	if programs, err := buildOnce(); err == nil {
		os.RemoveAll(programs)
	}
	os.Exit(code)
}

// build builds the programs without the race detector, whose cost would be measured.
func build() (programs string, err error) {
	// Go caches the result of a test by the files that the test itself has read, without those that it compiles. This
	// looks at each of them, so that a changed file causes a new test.
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
		return "", fmt.Errorf("look at the module's files: %w", err)
	}
	if programs, err = os.MkdirTemp("", "linkstream-bench-test-"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", programs+"/", "./bench", "./deploy/standalone", "./edge", "./api", "./ingest")
	cmd.Dir = moduleRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		return programs, fmt.Errorf("build: %w\n%s", err, out)
	}
	return programs, nil
}

// program returns the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out tests of the built programs")
	}
	programs, err := buildOnce()
	testkit.Must(t, err)
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

// measure runs scenarios with rounds as short as possible and returns the report.
func measure(t *testing.T, args ...string) *report.Report {
	t.Helper()
	dir := t.TempDir()
	path, page := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")
	args = append(args, "-programs", filepath.Dir(program(t, "bench")), "-rounds=1", "-round=100ms", "-duration=300ms",
		"-links=200", "-clicks=20000", "-conns=8", "-json", path, "-html", page)
	out, errOut, err := bench(t, args...)
	// Bounds of health mean nothing in so short a run beside other tests.
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !(ok && exit.ExitCode() == 2) {
		t.Fatalf("%q: %v\n%s%s", args, err, errOut, out)
	}
	r, err := report.Load(path)
	testkit.Must(t, err)
	testkit.Must(t, r.Failed())
	for _, s := range r.Scenarios {
		if len(s.Checks) == 0 {
			t.Errorf("%s has no checks", s.Name)
		}
		for _, m := range s.Metrics {
			if len(m.Samples) == 0 || m.Samples[0] < 0 || math.IsInf(m.Samples[0], 0) {
				t.Errorf("%s: %s: %v", m.Name, m.Of, m.Samples)
			}
			if !strings.Contains(out, m.Name+": "+m.Of) {
				t.Errorf("%s: %s is not in the text\n%s", m.Name, m.Of, out)
			}
		}
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte(`class="bars"`)) {
		t.Errorf("page of %d bytes, error %v", len(html), err)
	}
	return r
}

// wanted is a metric of a scenario.
type wanted struct{ scenario, name, of string }

func wantMetrics(t *testing.T, r *report.Report, all ...wanted) {
	t.Helper()
	for _, w := range all {
		if m := r.Scenario(w.scenario).Metric(w.name, w.of); m.Median() <= 0 {
			t.Errorf("no metric %+v in %+v", w, r.Scenario(w.scenario).Metrics)
		}
	}
}

const (
	cpu     = "CPU per redirect"
	perBare = " / bare fasthttp"
)

// TestEmbedded runs all scenarios on embedded engines.
func TestEmbedded(t *testing.T) {
	for _, group := range []struct {
		args    []string
		metrics []wanted
		bounds  int
	}{
		{[]string{"redirect", "connections", "create", "-quick"}, []wanted{
			{"redirect", "redirects per second, closed loop", "standalone"},
			{"redirect", cpu, "edge, spooling" + perBare}, {"redirect", cpu + ", open loop", "standalone" + perBare},
			{"redirect", "redirect latency p99.9, open loop", "standalone"}, {"redirect", "resident memory", "edge, spooling"},
			{"connections", cpu, "edge, spooling" + perBare},
			{"connections", "CPU per HTTPS redirect", "edge, spooling, full TLS handshake" + perBare + ", full TLS handshake"},
			{"connections", "CPU per HTTPS redirect", "edge, spooling, resumed TLS session" + perBare + ", resumed TLS session"},
			{"connections", "CPU per HTTPS redirect", "edge, spooling, lasting TLS connection" + perBare + ", lasting TLS connection"},
			{"create", "CPU per link", "standalone / bare SQLite insert"}, {"create", "link latency p99, open loop", "standalone"},
			{"create", "CPU per link of a bulk call", "standalone / bare SQLite insert of 1000 rows"}}, 11},
		{[]string{"read", "pipeline", "-quick", "-rate=20", "-webhooks"}, []wanted{
			{"read", "CPU per stats call", "statistics, most popular link / statistics, any link"},
			{"read", "stats call latency p99, open loop", "statistics, any link"},
			{"read", "report latency p99, open loop", "month by mobile devices, most popular link"},
			{"read", "CPU per report", "month, account / month, any link"}, {"read", "CPU per list call", "last page / first page"},
			{"pipeline", "freshness p50", "standalone"}, {"pipeline", "CPU at 100 clicks per second, 0 webhooks", "standalone"},
			{"pipeline", "CPU per click at 100 clicks per second, 100 webhooks", "standalone"}}, 4},
		{[]string{"abuse", "-start"}, []wanted{
			{"abuse", "redirect latency p99", "unknown hashes / quiet"}, {"abuse", "shorten latency p99", "sign-in from many networks / quiet"},
			{"abuse", "connections of the attack", "idle connections"}, {"abuse", "redirect latency p99", "handshakes from many networks / quiet"},
			{"abuse", "stats latency p99", "reports of one account / quiet"}, {"abuse", "report latency p99", "searches of one account / quiet"}}, 8},
		{[]string{"cold", "-start", "-rate=500"}, []wanted{
			{"cold", "CPU per cold redirect", "edge, spooling / bare SQLite look-up"},
			{"cold", "cold redirect latency p99, open loop", "edge, spooling"}, {"cold", "look-ups per query, closed loop", "edge, spooling"}}, 0},
		{[]string{"scale", "-start", "-rate=200"}, []wanted{
			{"scale", cpu, "4 edges / 1 edge"}, {"scale", cpu + ", open loop", "4 bare servers / 1 bare server"},
			{"scale", "redirects per second, closed loop", "2 edges"}}, 0},
	} {
		t.Run(strings.Join(group.args, " "), func(t *testing.T) {
			t.Parallel()
			r := measure(t, group.args...)
			wantMetrics(t, r, group.metrics...)
			testkit.Equal(t, "bounds", len(r.Bounds), group.bounds)
		})
	}
}

// TestReal runs scenarios on real engines, which the tests share.
func TestReal(t *testing.T) {
	for args, metrics := range map[string][]wanted{
		"pipeline": {{"pipeline", "CPU per counted click", "worker / bare clickhouse-go insert"},
			{"pipeline", "CPU per shipped click", "shipper / bare kafka-go produce"}, {"pipeline", "freshness p99", "services"},
			{"pipeline", "CPU at 5 clicks per second", "ingest"}, {"pipeline", "CPU at 10000 clicks per second", "ClickHouse"}},
		"redirect": {{"redirect", cpu, "edge, shipping" + perBare}, {"redirect", cpu, "services (ingest)"}},
		"read -rate=20": {{"read", "CPU per report", "month, most popular link (with the store)"},
			{"read", "stats call latency p99, open loop", "statistics, any link"}},
		"scale -rate=200": {{"scale", "CPU per counted click", "workers: 4, partitions: 8 / workers: 1, partitions: 8"},
			{"scale", "clicks per insert", "workers: 1, partitions: 64"}},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			r := measure(t, append(strings.Fields(args), "-start", "-engines=real", "-postgres", engines.Postgres(t),
				"-kafka", engines.Kafka(t), "-clickhouse", engines.ClickHouse(t))...)
			wantMetrics(t, r, metrics...)
			for _, address := range []string{"-postgres", "-kafka", "-clickhouse"} {
				if strings.Contains(r.Command, address) {
					t.Errorf("the report shows an address: %s", r.Command)
				}
			}
		})
	}
}

// TestRunning measures a service that is already running, and a peer.
func TestRunning(t *testing.T) {
	t.Parallel()
	edge, api, token := startService(t)
	peer := httptest.NewServer(http.RedirectHandler("https://example.com/", http.StatusMovedPermanently))
	defer peer.Close()
	r := measure(t, "redirect", "-edge", edge, "-api", api, "-token", token, "-peer", "other="+peer.URL+"/abc")
	wantMetrics(t, r, wanted{"redirect", "redirects per second, closed loop", "running service"},
		wanted{"redirect", "redirect latency p99, open loop", "running service"}, wanted{"redirect", cpu, "other"})
	if strings.Contains(r.Command, token) || strings.Contains(r.Command, api) || strings.Contains(r.Command, peer.URL) {
		t.Errorf("the report shows secrets or addresses: %s", r.Command)
	}
}

// startService starts a service of which bench knows only addresses and a token.
func startService(t *testing.T) (edge, api, token string) {
	t.Helper()
	addrs, err := system.FreeAddrs(3)
	testkit.Must(t, err)
	token = "ls_" + rand.Text() + rand.Text()
	child, err := proc.Start(proc.AnyCPU, filepath.Join(t.TempDir(), "log"), []string{"LINKSTREAM_BOOTSTRAP_TOKEN=" + token},
		program(t, "standalone"), "-data", filepath.Join(t.TempDir(), "data"), "-edge.listen", addrs[0], "-api.listen", addrs[1],
		"-ops.listen", addrs[2])
	testkit.Must(t, err)
	t.Cleanup(child.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	testkit.Must(t, child.Await(ctx, func(ctx context.Context) error {
		return system.Answers(ctx, "http://"+addrs[2]+"/readyz")
	}))
	return "http://" + addrs[0], "http://" + addrs[1], token
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd := exec.Command(program(t, "bench"), "redirect", "-start", "-links=10", "-programs", filepath.Dir(program(t, "bench")))
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	progress, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	defer cmd.Process.Kill()
	timeout := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timeout.Stop()
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if strings.Contains(lines.Text(), "warm-up") {
			testkit.Must(t, cmd.Process.Signal(os.Interrupt))
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit code 1", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

func TestShow(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, cpu := range []float64{10, 5} {
		s := &report.Scenario{Name: "redirect"}
		s.Add("CPU per redirect", "edge", "µs", cpu)
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i, ".json")))
		testkit.Must(t, (&report.Report{Scenarios: []*report.Scenario{s}}).Save(paths[i]))
	}
	page := filepath.Join(dir, "page.html")
	out, errOut, err := bench(t, "-html", page, "show", paths[0], paths[1])
	if err != nil || !strings.Contains(out, "-50.0 %  CPU per redirect: edge (µs)") {
		t.Errorf("error %v\n%s%s", err, errOut, out)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("-50.0 %")) {
		t.Errorf("error %v\n%s", err, html)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no scenario":               {nil, "name a scenario"},
		"an unknown scenario":       {[]string{"redirect", "speed"}, `no scenario "speed"`},
		"attacks on a service":      {[]string{"abuse", "-token", "ls_a"}, "-start"},
		"an unknown attack":         {[]string{"abuse", "-start", "-attacks=sign-in,earthquake"}, `"earthquake"`},
		"a peer elsewhere":          {[]string{"redirect", "-start", "-peer", "a=http://192.0.2.1:80/b"}, "-i-own-this-target"},
		"a target elsewhere":        {[]string{"redirect", "-edge", "http://192.0.2.1:80"}, "-i-own-this-target"},
		"a target by name":          {[]string{"redirect", "-api", "http://linkstream.example:80"}, "-i-own-this-target"},
		"a target that is no URL":   {[]string{"redirect", "-api", "127.0.0.1:8081"}, "-api"},
		"a target with TLS":         {[]string{"redirect", "-edge", "https://127.0.0.1:443"}, "-edge"},
		"no token":                  {[]string{"redirect"}, "-token"},
		"too many links":            {[]string{"redirect", "-start", "-links=10000001"}, "-links"},
		"a run without end":         {[]string{"redirect", "-start", "-duration=100h", "-conns=0"}, "-duration"},
		"no report to show":         {[]string{"show"}, "name one report or two"},
		"a report that is missing":  {[]string{"show", "/no/such/old.json"}, "/no/such/old.json"},
		"a peer without a name":     {[]string{"redirect", "-start", "-peer", "http://127.0.0.1:80/"}, "name=URL"},
		"one engine of three":       {[]string{"redirect", "-start", "-engines=real", "-kafka=127.0.0.1:9092"}, "name all three"},
		"engines without real ones": {[]string{"redirect", "-start", "-postgres=a", "-kafka=a", "-clickhouse=a"}, "-engines=real"},
		"engines elsewhere": {[]string{"redirect", "-start", "-engines=real", "-postgres=postgres://192.0.2.1:5432/a",
			"-kafka=127.0.0.1:9092,192.0.2.2:9092", "-clickhouse=clickhouse://192.0.2.3:9000/a"}, `"192.0.2.2" is not`},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := bench(t, c.args...)
			if err == nil || !strings.Contains(errOut, c.want) {
				t.Errorf("error %v, %q is not in\n%s%s", err, c.want, errOut, out)
			}
		})
	}
}

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
	"linkstream/deploy/testengines/enginetest"
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

// mayBeZero are metrics of an edge that has kept its cache, and of what is less than a page of memory.
var mayBeZero = map[string]bool{
	"memory: resident memory per idle connection": true, "memory: goroutines per idle connection": true,
	"memory: memory of the kernel, both ends, per idle connection": true,
	"look-ups per redirect after a restart: warm":                  true, "store queries per second after a restart: warm": true,
}

// measure runs scenarios with rounds as short as possible and returns the report.
func measure(t *testing.T, args ...string) *report.Report {
	t.Helper()
	dir := t.TempDir()
	path, page := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")
	args = append(args, "-programs", filepath.Dir(program(t, "bench")), "-rounds=1", "-round=100ms", "-duration=300ms",
		"-links=200", "-clicks=20000", "-conns=8", "-idle=200", "-generators=2", "-json", path, "-html", page)
	out, errOut, err := bench(t, args...)
	// Bounds of health mean nothing in so short a run beside other tests.
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !(ok && exit.ExitCode() == 2) {
		t.Fatalf("%q: %v\n%s%s", args, err, errOut, out)
	}
	r, err := report.Load(path)
	testkit.Must(t, err)
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("<figure>")) {
		t.Errorf("page of %d bytes, error %v", len(html), err)
	}
	if len(r.Checks) == 0 || r.Failed() != nil {
		t.Errorf("checks %+v", r.Checks)
	}
	for _, m := range r.Metrics {
		if len(m.Samples) != 1 || !(m.Samples[0] > 0 || m.Samples[0] == 0 && mayBeZero[m.Name]) || math.IsInf(m.Samples[0], 0) {
			t.Errorf("%s: %v", m.Name, m.Samples)
		}
		if len(r.Health) == 0 && !strings.Contains(out, m.Name) {
			t.Errorf("%s is not in the table\n%s", m.Name, out)
		}
	}
	for _, h := range r.Health {
		if !strings.Contains(out, h.Name) {
			t.Errorf("%s is not in the table\n%s", h.Name, out)
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
	t.Parallel()
	// Several scenarios run in one process, and the groups side by side. Together they have the health of all.
	healthy := make(chan []report.Health, 3)
	t.Run("side by side", func(t *testing.T) {
		testEmbedded(t, healthy)
		testAbuse(t)
		testCold(t)
		testRestart(t)
		testScale(t)
		testCatalogue(t)
		testReal(t)
		testRunning(t)
	})
	close(healthy)
	t.Run("health has a metric for each bound", func(t *testing.T) {
		names := map[string]bool{}
		for group := range healthy {
			for _, h := range group {
				names[h.Name] = true
			}
		}
		if len(names) != 22 {
			t.Errorf("%d metrics, want 22: %v", len(names), names)
		}
	})
}

// testEmbedded runs all scenarios on embedded engines.
func testEmbedded(t *testing.T, healthy chan<- []report.Health) {
	for _, group := range []struct{ scenarios, metrics []string }{
		{[]string{"redirect", "connections"}, []string{
			"redirect: redirects per second, closed loop: standalone", "redirect: CPU per redirect: edge, spooling / bare fasthttp",
			"redirect: CPU per redirect: edge, spooling, links with rules / edge, spooling",
			"redirect: CPU per redirect: bare, on edge/eventloop / bare fasthttp", "redirect: CPU per redirect: edge, shipping (broker)",
			"redirect: CPU per redirect, open loop: standalone / bare fasthttp",
			"redirect: redirect latency p99.9, open loop: standalone", "redirect: resident memory: edge, spooling",
			"connections: CPU per redirect: edge, spooling / bare fasthttp",
			"connections: CPU per redirect: edge, spooling, full TLS handshake / bare fasthttp, full TLS handshake",
			"connections: CPU per redirect: edge, spooling, resumed TLS session / bare fasthttp, resumed TLS session",
			"connections: CPU per redirect: edge, spooling, lasting TLS connection / bare fasthttp, lasting TLS connection",
			"connections: CPU per redirect, open loop: standalone"}},
		{[]string{"pipeline", "freshness", "shorten", "bulk"}, []string{
			"bulk: links per second, closed loop: standalone", "bulk: CPU per link: standalone / bare SQLite insert of 1000 rows",
			"pipeline: counted clicks per second, closed loop: worker",
			"pipeline: CPU per counted click: worker / bare kafka-go fetch",
			"pipeline: CPU per shipped click: shipper / bare kafka-go produce", "freshness: freshness p50",
			"shorten: links per second, closed loop: standalone", "shorten: CPU per link: standalone / bare SQLite insert",
			"shorten: link latency p99, open loop: standalone"}},
		{[]string{"soak", "memory", "stats", "links", "reports"}, []string{
			"soak: time to drain after the last redirect: standalone", "soak: resident memory, open loop: standalone",
			"memory: resident memory: edge, shipping (edge)", "memory: look-ups per link",
			"memory: resident memory per idle connection",
			"stats: CPU per stats call: most popular link / any link", "stats: stats call latency p99, open loop: any link",
			"reports: CPU per report: month, most popular link / statistics, most popular link",
			"reports: report latency p99, open loop: filtered month, any link",
			"links: CPU per list call: page 10 / page 1", "links: list call latency p99, open loop: page 10"}},
	} {
		t.Run(strings.Join(group.scenarios, " "), func(t *testing.T) {
			t.Parallel()
			r := measure(t, append(group.scenarios, "-quick")...)
			wantMetrics(t, r, group.metrics...)
			healthy <- r.Health
		})
	}
}

// testAbuse runs the scenario of attacks, which is apart from the others.
func testAbuse(t *testing.T) {
	t.Run("abuse", func(t *testing.T) {
		t.Parallel()
		wantMetrics(t, measure(t, "abuse", "-start"), "redirect latency p99: unknown hashes / quiet",
			"shorten latency p50: sign-in from many networks / quiet", "connections per second of the attack: idle connections",
			"redirect latency p99: handshakes from many networks / quiet")
	})
}

// testCold runs the scenario of links that are not cached.
func testCold(t *testing.T) {
	t.Run("cold", func(t *testing.T) {
		t.Parallel()
		wantMetrics(t, measure(t, "cold", "-start", "-rate=500"), "CPU per cold redirect: edge, spooling / bare SQLite look-up",
			"cold redirect latency p99, open loop: edge, spooling", "look-ups per query, closed loop")
	})
}

// testRestart restarts edges, which is apart from the others.
func testRestart(t *testing.T) {
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		wantMetrics(t, measure(t, "restart", "-start", "-quick", "-rate=300"), "store queries per second after a restart: warm",
			"look-ups per redirect after a restart: cold", "redirect latency p99 after a restart: warm", "time to start: cold")
	})
}

// testScale runs the scenario of several nodes, which is apart from the others.
func testScale(t *testing.T) {
	t.Run("scale", func(t *testing.T) {
		t.Parallel()
		wantMetrics(t, measure(t, "scale", "-start", "-rate=200"), "CPU per redirect: 4 edges / 1 edge",
			"CPU per redirect, open loop: 4 edges / 1 edge", "CPU per redirect, open loop: 4 bare servers / 1 bare server",
			"CPU per redirect: 4 bare servers / 1 bare server", "redirects per second, closed loop: 2 edges",
			"CPU per counted click: 4 workers, 8 partitions / 1 worker, 8 partitions",
			"CPU per counted click: 1 worker, 256 partitions / 1 worker, 8 partitions", "clicks per insert: 1 worker, 64 partitions")
	})
}

// testCatalogue runs the scenario of accounts with many links, which is apart from the others.
func testCatalogue(t *testing.T) {
	t.Run("catalogue", func(t *testing.T) {
		t.Parallel()
		r := measure(t, "catalogue", "-start", "-rate=200")
		wantMetrics(t, r, "page latency p99, open loop: overview, 200 links",
			"CPU per page, open loop: overview, 200 links / overview, 2 links", "page latency p50, open loop: last API page, 20 links",
			"time until the first page: search, 200 links")
		for _, curve := range r.Growth {
			testkit.Equal(t, curve.Chart+" of "+curve.Name, curve.Sizes, []float64{2, 20, 200})
		}
		testkit.Equal(t, "curves", len(r.Growth), 3*6)
	})
}

// testReal runs scenarios on real engines, which the tests share.
func testReal(t *testing.T) {
	for scenario, metrics := range map[string][]string{
		"pipeline": {"counted clicks per second, closed loop: worker", "CPU per counted click: worker / bare clickhouse-go insert"},
		"redirect": {"CPU per redirect: services / bare fasthttp", "CPU per redirect: services (ingest)"},
		"history -rate=200": {
			"call latency p99, open loop: statistics, any link, 200000 clicks / statistics, any link, 20000 clicks",
			"CPU per call: month, most popular link, 200000 clicks / month, most popular link, 20000 clicks",
			"call latency p50, open loop: month, any link, 20000 clicks"},
	} {
		t.Run(scenario+" on real engines", func(t *testing.T) {
			t.Parallel()
			r := measure(t, append(strings.Fields(scenario), "-start", "-engines=real", "-postgres", engines.Postgres(t),
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

// testRunning measures a service that is already running.
func testRunning(t *testing.T) {
	t.Run("redirect of a service that already runs", func(t *testing.T) {
		t.Parallel()
		edge, api, token := startService(t)
		r := measure(t, "redirect", "-edge", edge, "-api", api, "-token", token)
		wantMetrics(t, r, "redirects per second, closed loop: running service",
			"redirect latency p99, open loop: running service")
		if strings.Contains(r.Command, token) || strings.Contains(r.Command, api) {
			t.Errorf("the report shows secrets or addresses: %s", r.Command)
		}
	})
}

func TestGenerators(t *testing.T) {
	t.Parallel()
	edge, api, token := startService(t)
	dir := t.TempDir()
	at := time.Now().Add(5 * time.Second).UTC().Format(time.RFC3339)
	var running sync.WaitGroup
	reports := []string{filepath.Join(dir, "0.json"), filepath.Join(dir, "1.json")}
	for _, path := range reports {
		running.Go(func() {
			out, errOut, err := bench(t, "redirect", "-edge", edge, "-api", api, "-token", token, "-rounds=1", "-round=100ms",
				"-duration=300ms", "-links=10", "-conns=4", "-at", at, "-json", path)
			if err != nil {
				t.Errorf("%v\n%s%s", err, errOut, out)
			}
		})
	}
	running.Wait()
	out, errOut, err := bench(t, append([]string{"-merge"}, reports...)...)
	for _, want := range []string{"2 generators: go run ./bench redirect", "redirect latency p99.9, open loop: running service",
		"ok      generator 2: clicks of the newest 10 links in the list"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("error %v, %q is not in\n%s%s", err, want, errOut, out)
		}
	}
	if strings.Contains(out, "-at") {
		t.Errorf("the command repeats a time:\n%s", out)
	}
}

// startService starts a service of which bench knows only addresses and a token.
func startService(t *testing.T) (edge, api, token string) {
	t.Helper()
	addrs, err := system.FreeAddrs(3)
	testkit.Must(t, err)
	token = "ls_" + rand.Text() + rand.Text()
	child, err := proc.Start(filepath.Join(t.TempDir(), "log"), []string{"LINKSTREAM_BOOTSTRAP_TOKEN=" + token},
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

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	for i, cpu := range []float64{10, 5} {
		r := report.Report{Scenario: "redirect"}
		for round := range 5 {
			r.Add("CPU per redirect", "µs", report.Lower, cpu+float64(round)/10)
		}
		testkit.Must(t, r.Save(filepath.Join(dir, fmt.Sprint(i, ".json"))))
	}
	old, new := filepath.Join(dir, "0.json"), filepath.Join(dir, "1.json")
	out, errOut, err := bench(t, "-compare", old, new)
	if err != nil || !strings.Contains(out, "better  CPU per redirect (µs)") {
		t.Errorf("error %v\n%s%s", err, errOut, out)
	}
	t.Run("writes a page", func(t *testing.T) {
		page := filepath.Join(dir, "page.html")
		if out, errOut, err := bench(t, "-compare", "-html", page, old, new); err != nil {
			t.Fatalf("%v\n%s%s", err, errOut, out)
		}
		if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("CPU per redirect")) {
			t.Errorf("error %v\n%s", err, html)
		}
	})
	t.Run("exits with code 2 beyond a limit", func(t *testing.T) {
		for _, args := range [][]string{{"-fail-worse=50", new, old}, {"-fail-above", "CPU per redirect=4", old, new}} {
			out, errOut, err := bench(t, append([]string{"-compare"}, args...)...)
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != 2 || !strings.Contains(errOut, "beyond the limit") {
				t.Errorf("%q: error %v\n%s%s", args, err, errOut, out)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no scenario":               {nil, "name a scenario"},
		"an unknown scenario":       {[]string{"redirect", "speed"}, `no scenario "speed"`},
		"a history on SQLite":       {[]string{"history", "-start"}, "-engines=real"},
		"attacks on a service":      {[]string{"abuse", "-token", "ls_a"}, "-start"},
		"an unknown attack":         {[]string{"abuse", "-start", "-attacks=sign-in,earthquake"}, `"earthquake"`},
		"a service elsewhere":       {[]string{"redirect", "-target", "192.0.2.1"}, "-i-own-this-target"},
		"a target that is a URL":    {[]string{"redirect", "-target", "http://127.0.0.1:8080"}, "-target"},
		"a target elsewhere":        {[]string{"redirect", "-edge", "http://192.0.2.1:80"}, "-i-own-this-target"},
		"a target by name":          {[]string{"redirect", "-api", "http://linkstream.example:80"}, "-i-own-this-target"},
		"a target that is no URL":   {[]string{"redirect", "-api", "127.0.0.1:8081"}, "-api"},
		"a target with TLS":         {[]string{"redirect", "-edge", "https://127.0.0.1:443"}, "-edge"},
		"no token":                  {[]string{"redirect"}, "-token"},
		"a begin in the past":       {[]string{"redirect", "-start", "-at=2026-01-01T00:00:00Z"}, "in the past"},
		"a begin that is no time":   {[]string{"redirect", "-start", "-at=noon"}, "-at"},
		"one report to merge":       {[]string{"-merge"}, "two or more"},
		"merging and comparing":     {[]string{"-merge", "-compare"}, "name one"},
		"no generators":             {[]string{"redirect", "-start", "-generators=0"}, "-generators"},
		"too many links":            {[]string{"redirect", "-start", "-links=10000001"}, "-links"},
		"a run without end":         {[]string{"redirect", "-start", "-duration=100h", "-conns=0"}, "-duration"},
		"one report to compare":     {[]string{"-compare", "old.json"}, "name two reports"},
		"a report that is missing":  {[]string{"-compare", "/no/such/old.json", "/no/such/new.json"}, "/no/such/old.json"},
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

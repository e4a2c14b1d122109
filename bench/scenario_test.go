//go:build nightly

package main_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

var engines enginetest.Engines

func TestMain(m *testing.M) { os.Exit(launch.Of(engines.Of(m)).Run()) }

// TestEmbedded runs the other scenarios on embedded engines.
func TestEmbedded(t *testing.T) {
	for _, group := range []struct {
		args    []string
		metrics []wanted
		bounds  int
	}{
		{[]string{"connections", "create", "-quick", "-start"}, []wanted{
			{"connections", cpu, "edge, spooling" + perBare},
			{"connections", "CPU per HTTPS redirect", "edge, spooling, full TLS handshake" + perBare + ", full TLS handshake"},
			{"connections", "CPU per HTTPS redirect", "edge, spooling, resumed TLS session" + perBare + ", resumed TLS session"},
			{"connections", "CPU per HTTPS redirect", "edge, spooling, lasting TLS connection" + perBare +
				", lasting TLS connection"},
			{"create", "CPU per link", "standalone / bare SQLite insert"},
			{"create", "links per second, open loop", "standalone"},
			{"create", "CPU per bulk link", "standalone"}}, 9},
		{[]string{"read", "pipeline", "-quick", "-start", "-rates=20"}, []wanted{
			{"read", "CPU per stats call", "statistics, most popular link / statistics, any link"},
			{"read", "stats calls per second, open loop", "statistics, any link"},
			{"read", "reports per second, open loop", "month by mobile devices, most popular link"},
			{"read", "CPU per report", "month, account / month, any link"},
			{"read", "CPU per list call", "last page / first page"},
			{"pipeline", "freshness p50", "standalone"}, {"pipeline", "CPU at 100 clicks per second", "standalone"}}, 6},
		{[]string{"abuse", "-start"}, []wanted{
			{"abuse", "redirect latency p99", "unknown hashes / quiet"},
			{"abuse", "shorten latency p99", "sign-in from many networks / quiet"},
			{"abuse", "connections of the attack", "idle connections"},
			{"abuse", "redirect latency p99", "handshakes from many networks / quiet"},
			{"abuse", "stats latency p99", "reports of one account / quiet"},
			{"abuse", "report latency p99", "searches of one account / quiet"},
			{"abuse", "list latency p99", "slow exports of one account / quiet"}}, 32},
		{[]string{"cold", "-start", "-rates=500"}, []wanted{
			{"cold", "CPU per cold redirect", "edge, spooling / bare SQLite look-up"},
			{"cold", "cold redirects per second, open loop", "edge, spooling"},
			{"cold", "look-ups per query, closed loop", "edge, spooling"}}, 2},
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
	for _, program := range []string{"api", "edge", "ingest"} {
		launch.Program(t, program) // into the folder that programs returns
	}
	for args, metrics := range map[string][]wanted{
		"pipeline": {{"pipeline", "CPU per counted click", "worker / bare clickhouse-go insert"},
			{"pipeline", "freshness p99", "services"},
			{"pipeline", "CPU at 5 clicks per second", "ingest"}, {"pipeline", "CPU at 10000 clicks per second", "ClickHouse"}},
		"redirect": {{"redirect", cpu, "edge, shipping" + perBare}, {"redirect", cpu, "services (ingest)"}},
		"read -rates=20": {{"read", "CPU per report", "month, most popular link (with the store)"},
			{"read", "stats calls per second, open loop", "statistics, any link"}},
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
		wanted{"redirect", "redirects per second, open loop", "running service"}, wanted{"redirect", cpu, "other"},
		wanted{"redirect", cpu, "running service" + perBare})
	for _, scenario := range []string{"create", "read"} { // one token suffices, and nothing is left behind
		measure(t, scenario, "-edge", edge, "-api", api, "-token", token)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api+"/api/v1/links", nil)
	testkit.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer res.Body.Close()
	if left, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(left), `"total":0`) {
		t.Errorf("links are left: %s, error %v", left, err)
	}
	if strings.Contains(r.Command, token) || strings.Contains(r.Command, api) || strings.Contains(r.Command, peer.URL) {
		t.Errorf("the report shows secrets or addresses: %s", r.Command)
	}
}

// startService starts a service that bench gets by its addresses and a token only.
func startService(t *testing.T) (edge, api, token string) {
	t.Helper()
	addrs := []string{testkit.FreeAddress(t), testkit.FreeAddress(t), testkit.FreeAddress(t)}
	token = "ls_" + rand.Text() + rand.Text()
	child, err := proc.Start(filepath.Join(t.TempDir(), "log"),
		[]string{"LINKSTREAM_BOOTSTRAP_TOKEN=" + token},
		launch.Program(t, "standalone"), "-data", filepath.Join(t.TempDir(), "data"), "-edge.listen", addrs[0],
		"-api.listen", addrs[1],
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
	path := filepath.Join(t.TempDir(), "partial.json")
	cmd := exec.Command(launch.Program(t, "bench"), "redirect", "-start", "-links=10", "-programs", programs(t),
		"-round=50ms", "-json", path)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	progress, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	defer cmd.Process.Kill()
	timeout := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timeout.Stop()
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if strings.Contains(lines.Text(), "round 3 of 5") {
			testkit.Must(t, cmd.Process.Signal(os.Interrupt))
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit code 1", err)
	}
	r, err := report.Load(path)
	testkit.Must(t, err)
	if r.Incomplete == "" || len(r.Scenario("redirect").Metric(cpu, "standalone").Samples) < 2 {
		t.Errorf("the report is %+v", r)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

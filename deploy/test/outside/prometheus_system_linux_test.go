//go:build deploy

package outside_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

const watchedToken = "ls_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

// server is a program that keeps its addresses and its data over restarts.
type server struct {
	owner   *testing.T // the server ends with it, also if a subtest has started it
	ops     string     // base URL
	name    string
	env     []string
	process *launch.Process
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.process = launch.Start(s.owner, launch.Command(launch.Program(t, s.name), s.env))
}

func (s *server) awaitReady(t *testing.T) {
	t.Helper()
	s.process.AwaitReady(t, s.ops)
}

// watched is linkstream on real engines, and a Prometheus that scrapes it.
type watched struct {
	engines    *enginetest.Lent
	topics     string // how their names begin
	api, edge  string // URLs
	tight      string // URL of the edge whose spool and disk are small
	disk       string // of that edge
	programs   map[string]*server
	prometheus string // base URL
	began      time.Time
	fired      map[string]bool // alerts
}

// add adds a program without starting it.
func (s *watched) add(t *testing.T, name, program string, env ...string) {
	t.Helper()
	ops := testkit.FreeAddress(t)
	s.programs[name] = &server{owner: t, ops: "http://" + ops, name: program, env: slices.Concat([]string{
		"LINKSTREAM_OPS_LISTEN=" + ops, "LINKSTREAM_EDGE_URL=http://" + shortHost,
		"LINKSTREAM_POSTGRES_DSN=" + s.engines.PostgresDatabase, "LINKSTREAM_KAFKA_BROKERS=" + s.engines.Kafka.Addr,
		"LINKSTREAM_CLICKHOUSE_DSN=" + s.engines.ClickHouseDatabase,
		"LINKSTREAM_KAFKA_CLICKS_TOPIC=" + s.topics + ".clicks", "LINKSTREAM_KAFKA_DEAD_TOPIC=" + s.topics + ".dead",
		"LINKSTREAM_KAFKA_CHANGES_TOPIC=" + s.topics + ".changes", "LINKSTREAM_KAFKA_GROUP=" + s.topics}, env)}
}

// startPrometheus scrapes the programs every two seconds, and evaluates the alerts over seconds instead of minutes.
func (s *watched) startPrometheus(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile("../../prometheus/alerts.yaml")
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "alerts.yaml"), hasten(t, rules), 0o600))
	var targets []string
	for _, p := range s.programs {
		targets = append(targets, strconv.Quote(strings.TrimPrefix(p.ops, "http://")))
	}
	config := "global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}\nrule_files: " +
		"[alerts.yaml]\nscrape_configs:\n" +
		"  - {job_name: linkstream, static_configs: [{targets: [" + strings.Join(targets, ", ") + "]}]}\n"
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o600))
	addr := testkit.FreeAddress(t)
	s.prometheus, s.began = "http://"+addr, time.Now()
	launch.Start(t, launch.Command(prometheusProgram(t, "prometheus"), nil, "--web.listen-address="+addr,
		"--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data")))
	testkit.SucceedsWithin(t, launch.ReadyWithin, func() error {
		_, err := launch.Get(s.prometheus + "/-/ready")
		return err
	})
}

var (
	windows   = regexp.MustCompile(`\[\d+m\]|offset \d+[mh]`)
	durations = regexp.MustCompile(`(?m)for: \d+m$`)
)

// hasten makes the windows of alerts 20 seconds long, and the time before they fire 3 seconds.
func hasten(t *testing.T, rules []byte) []byte {
	t.Helper()
	rules = windows.ReplaceAllFunc(rules, func(window []byte) []byte {
		if window[0] == '[' {
			return []byte("[20s]")
		}
		return []byte("offset 20s")
	})
	rules = durations.ReplaceAll(rules, []byte("for: 3s"))
	if left := regexp.MustCompile(`\b\d+[mh]\b`).Find(rules); left != nil {
		t.Fatalf("%s is left in the alerts", left)
	}
	return rules
}

// sample is a series of a result of Prometheus.
type sample struct {
	Metric map[string]string
	Value  [2]any   // of an instant
	Values [][2]any // of a range
}

// query asks Prometheus: path is query, or query_range.
func (s *watched) query(path string, parameters url.Values) ([]sample, error) {
	res, err := http.Get(s.prometheus + "/api/v1/" + path + "?" + parameters.Encode())
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []sample }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", parameters, answer.Error)
	}
	return answer.Data.Result, nil
}

// firing returns the alerts that fire now.
func (s *watched) firing() (names []string, err error) {
	found, err := s.query("query", url.Values{"query": {`ALERTS{alertstate="firing"}`}})
	for _, each := range found {
		names = append(names, each.Metric["alertname"])
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// wantFiring waits until alerts fire that have not fired since Prometheus was started, or that fire in several faults.
func (s *watched) wantFiring(t *testing.T, during func(), names ...string) {
	t.Helper()
	testkit.SucceedsWithin(t, 4*testkit.Patience, func() error {
		during()
		now, err := s.firing()
		for _, name := range names {
			if !slices.Contains(now, name) && !s.fired[name] {
				err = errors.Join(err, fmt.Errorf("%s does not fire", name))
			}
		}
		for _, name := range now {
			if slices.Contains(names, name) {
				s.fired[name] = true
			}
		}
		return err
	})
}

// call calls the API with the token of the first account, as soon as the rate limit allows it: tests call in loops.
func (s *watched) call(t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	testkit.Eventually(t, "the rate limit allows a call", func() bool {
		status, answer = callAPI(t, s.api, watchedToken, method, path, body)
		return status != http.StatusTooManyRequests
	})
	return status, answer
}

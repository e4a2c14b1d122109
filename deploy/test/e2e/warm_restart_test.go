//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestWarmRestart kills an edge and starts it again, with and without Postgres and Kafka.
func TestWarmRestart(t *testing.T) {
	t.Parallel()
	s := newServices(t, sharedEngines(t), longCaches)
	s.start(t)
	edge := s.program("edge")
	const links = 20
	changed := []string{"warm0", "warm1", "warm2"}
	hash := func(i int) string { return fmt.Sprint("warm", i) }
	visit := func(t *testing.T, hash string, status int) {
		t.Helper()
		testkit.Must(t, s.visit(t, http.MethodGet, "/"+hash).IsStatus(status))
	}
	// visitUnchanged visits all links that do not change.
	visitUnchanged := func(t *testing.T) {
		t.Helper()
		for i := range links {
			if !slices.Contains(changed, hash(i)) {
				visit(t, hash(i), http.StatusFound)
			}
		}
	}
	current := func(t *testing.T) {
		t.Helper()
		edge.awaitMetric(t, "linkstream_edge_changes_current", func(current float64) bool { return current == 1 })
	}
	for i := range links {
		s.owner().Alias(t, hash(i), "https://example.com/")
	}
	// An edge may read a change in the outbox before the topic has it, and drops what it caches in between. The api
	// empties the outbox when it stops, and an edge that starts follows the topic to its end.
	s.stop(t)
	s.start(t)
	current(t)
	for i := range links {
		visit(t, hash(i), http.StatusFound)
	}
	edge.end(t, syscall.SIGTERM) // which writes a dump
	edge.start(t)
	current(t)
	reachable := slices.Clone(edge.env)

	// Killed a second after changes, without Postgres and Kafka it serves what it had cached, and no link that changed.
	s.admin(t, "link", "off", changed[0])
	s.owner().Call(t, http.MethodDelete, "/api/v1/links/"+changed[1], "").Want(t, http.StatusOK)
	s.owner().Call(t, http.MethodPatch, "/api/v1/links/"+changed[2], `{"long_url":"https://example.com/new"}`,
		"Content-Type", "application/json").Want(t, http.StatusOK)
	time.Sleep(time.Second) // the promise
	edge.kill(t)
	edge.loseEngines(t)
	edge.launch(t)
	testkit.Eventually(t, "the edge listens", func() bool { return edge.process.Output.Contains("serving short links") })
	testkit.Succeeds(t, func() error { return s.visit(t, http.MethodHead, "/"+hash(4)).IsStatus(http.StatusFound) })
	for _, hash := range changed {
		visit(t, hash, http.StatusServiceUnavailable)
	}
	visitUnchanged(t)
	visit(t, "never", http.StatusServiceUnavailable)
	a := call(t, http.MethodGet, edge.ops+"/readyz", "")
	if a.Status != http.StatusServiceUnavailable || !strings.Contains(a.Raw, "link store") {
		t.Errorf("readyz does not name the link store: %v", a)
	}

	// Stopped and started again, with the engines it asks only for links that changed.
	edge.end(t, syscall.SIGTERM)
	edge.env = slices.Clone(reachable)
	edge.start(t)
	edge.awaitMetric(t, "linkstream_edge_snapshot_restored", func(n float64) bool { return int(n) == links-len(changed) })
	current(t)
	visitUnchanged(t)
	testkit.Equal(t, "queries", edge.metric(t, "linkstream_edge_link_queries_total"), 0)
	visit(t, changed[0], http.StatusGone)
	visit(t, changed[1], http.StatusGone)
	s.redirects(t, "/"+changed[2], "https://example.com/new")

	// A damaged file is no obstacle.
	edge.kill(t)
	snapshot := filepath.Join(setting(edge.env, "LINKSTREAM_SPOOL_DIR"), "links.snapshot")
	writeFile(t, snapshot, strings.Repeat("damaged", 1000))
	edge.start(t)
	visit(t, changed[0], http.StatusGone)
	visit(t, hash(4), http.StatusFound)
}

// loseEngines makes the program find neither Postgres nor Kafka when it starts again.
func (p *program) loseEngines(t *testing.T) {
	t.Helper()
	for i, v := range p.env {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "LINKSTREAM_POSTGRES_DSN":
			p.env[i] = name + "=postgres://nobody@" + testkit.FreeAddress(t) + "/nothing"
		case "LINKSTREAM_KAFKA_BROKERS":
			p.env[i] = name + "=" + testkit.FreeAddress(t)
		}
	}
}

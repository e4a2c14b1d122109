//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"linkstream/schema/testkit"
)

// TestWarmRestart kills an edge and starts it again, with and without its link store.
func TestWarmRestart(t *testing.T) {
	t.Parallel()
	s := newServices(t, sharedEngines(t), longCaches)
	s.start(t)
	edge := s.program("edge")
	const links = 20
	visit := func(t *testing.T, hash string, status int) {
		t.Helper()
		testkit.Must(t, s.visit(t, http.MethodGet, "/"+hash).IsStatus(status))
	}
	visitAll := func(t *testing.T) {
		t.Helper()
		for i := range links {
			visit(t, fmt.Sprintf("warm%d", i), http.StatusFound)
		}
	}
	// What is cached before the edge follows changes is looked up again.
	edge.awaitMetric(t, "linkstream_edge_changes_missed_total", func(n float64) bool { return n == 1 })
	visit(t, "last", http.StatusNotFound) // for an hour, unless its creation is announced
	for i := range links {
		s.owner().Alias(t, fmt.Sprintf("warm%d", i), "https://example.com/")
	}
	s.owner().Alias(t, "last", "https://example.com/")
	testkit.Succeeds(t, func() error { return s.visit(t, http.MethodHead, "/last").IsStatus(http.StatusFound) })
	// An edge may read a change in the link store before the topic has it, and drops what it caches in between. The
	// api publishes what waits when it stops, and an edge that starts follows the topic to its end.
	s.stop(t)
	s.start(t)
	edge.awaitMetric(t, "linkstream_edge_changes_current", func(current float64) bool { return current == 1 })
	path := filepath.Join(setting(edge.env, "LINKSTREAM_SPOOL_DIR"), "links.snapshot")
	// A change that is published twice drops what was cached in between.
	testkit.Eventually(t, "all links are cached and in the snapshot", func() bool {
		queries := edge.metric(t, "linkstream_edge_link_queries_total")
		visitAll(t)
		visit(t, "last", http.StatusFound)
		content, err := os.ReadFile(path)
		testkit.Must(t, err)
		return edge.metric(t, "linkstream_edge_link_queries_total") == queries && strings.Count(string(content), "https://example.com/") > links
	})
	reachable := slices.Clone(edge.env)
	away := func() {
		for i, v := range edge.env {
			if strings.HasPrefix(v, "LINKSTREAM_POSTGRES_DSN=") {
				edge.env[i] = "LINKSTREAM_POSTGRES_DSN=postgres://nobody@" + testkit.FreeAddress(t) + "/nothing"
			}
		}
	}
	awaitAnswer := func(t *testing.T) {
		t.Helper()
		testkit.Eventually(t, "the edge listens", func() bool { return edge.process.Output.Contains("waiting for Postgres") })
		testkit.Succeeds(t, func() error { return s.visit(t, http.MethodHead, "/warm0").IsStatus(http.StatusFound) })
	}

	// Killed, without Postgres it serves what it had cached.
	edge.kill(t)
	away()
	edge.launch(t)
	awaitAnswer(t)
	visitAll(t)
	visit(t, "never", http.StatusServiceUnavailable)
	a := call(t, http.MethodGet, edge.ops+"/readyz", "")
	if a.Status != http.StatusServiceUnavailable || !strings.Contains(a.Raw, "link store") {
		t.Errorf("readyz does not say that the link store is missing: %v", a)
	}

	// Killed again, with Postgres it asks only for what changed.
	edge.end(t, syscall.SIGTERM)
	s.admin(t, "link", "off", "warm3")
	edge.env = slices.Clone(reachable)
	edge.start(t)
	edge.awaitMetric(t, "linkstream_edge_snapshot_restored", func(n float64) bool { return n >= links-1 })
	edge.awaitMetric(t, "linkstream_edge_changes_current", func(current float64) bool { return current == 1 })
	visit(t, "warm3", http.StatusGone)
	for i := range links {
		if i != 3 {
			visit(t, fmt.Sprintf("warm%d", i), http.StatusFound)
		}
	}
	testkit.Equal(t, "queries", edge.metric(t, "linkstream_edge_link_queries_total"), 1)

	// What was taken down stays so without Postgres. If the kill came before the snapshot had the change, the edge
	// reads it again; until then it serves what it has restored.
	edge.kill(t)
	away()
	edge.launch(t)
	awaitAnswer(t)
	edge.awaitMetric(t, "linkstream_edge_changes_current", func(current float64) bool { return current == 1 })
	if a := s.visit(t, http.MethodGet, "/warm3"); a.Status != http.StatusGone && a.Status != http.StatusServiceUnavailable {
		t.Errorf("%v", a) // 503 if the kill came before the answer 410 was written
	}

	// A damaged file is no obstacle.
	edge.kill(t)
	writeFile(t, path, strings.Repeat("damaged", 1000))
	edge.env = slices.Clone(reachable)
	edge.start(t)
	visit(t, "warm3", http.StatusGone)
	visit(t, "warm4", http.StatusFound)
}

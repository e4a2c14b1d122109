//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// errorWithin is how soon a program answers that an engine is down.
const errorWithin = 5 * time.Second

// TestEngineFaults takes each engine down under load. At the end all of them are down when the services start.
// TestKill kills the programs. All other faults are those of TestFaults.
func TestEngineFaults(t *testing.T) {
	t.Parallel()
	c := startLoadedCluster(t, segmentSetting)
	c.causeEach(t,
		fault{"broker stopped", func() { c.stopBroker(t) }},
		fault{"edge killed while the broker is down", func() {
			testkit.Must(t, c.kafka.Stop())
			c.killEdge(t)
			testkit.Must(t, c.kafka.Start(t.Context()))
		}},
		fault{"ClickHouse down", func() { c.killClickHouse(t) }},
		fault{"Postgres down", func() { c.killPostgres(t) }},
	)
	c.restartWithoutEngines(t)
	c.stopAndVerify(t)
}

// stopBroker stops the broker for a long time: the spool grows, and links are created and followed as before.
func (c *loadedCluster) stopBroker(t *testing.T) {
	edge := c.program("edge")
	c.pause(time.Second)
	testkit.Must(t, c.kafka.Stop())
	c.awaitRise(t, "edge", gaugePending, 500)
	c.createAndFollow(t)
	c.awaitRise(t, "edge", gaugePending, 500)
	pending := edge.metric(t, gaugePending)
	testkit.Must(t, c.kafka.Start(t.Context()))
	edge.awaitMetric(t, gaugePending, func(now float64) bool { return now < pending/10 })
}

// killClickHouse requires that only reports need it. The api restarts without it.
func (c *loadedCluster) killClickHouse(t *testing.T) {
	api := c.program("api")
	c.pause(time.Second)
	testkit.Must(t, c.clickhouse.Kill())
	for range 2 {
		c.wantUnavailable(t, http.MethodGet, "/api/v1/stats/"+c.links[0], "", "Clicks")
		c.createAndFollow(t)
		testkit.Must(t, call(t, http.MethodGet, api.ops+"/readyz", "").IsStatus(http.StatusOK))
		api.stop(t)
		api.start(t)
	}
	testkit.Must(t, c.clickhouse.Start(t.Context()))
	testkit.Succeeds(t, func() error { return c.owner().Get(t, "/api/v1/links").IsStatus(http.StatusOK) })
}

// killPostgres also invalidates links in the edge's cache while the edge cannot look them up again.
func (c *loadedCluster) killPostgres(t *testing.T) {
	c.pause(time.Second)
	testkit.Must(t, c.postgres.Kill())
	c.invalidateLinks(t)
	for range 2 {
		c.wantUnknown(t, http.StatusServiceUnavailable)
		// The answer names the links, the token or its limit: it depends on what the API has cached.
		what := []string{"Links", "API tokens", "The rate limit"}
		c.wantUnavailable(t, http.MethodGet, "/api/v1/links", "", what...)
		c.wantUnavailable(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/"}`, what...)
		c.pause(time.Second)
	}
	testkit.Must(t, c.postgres.Start(t.Context()))
	for _, service := range []string{"edge", "api"} {
		c.program(service).awaitReady(t)
	}
	c.wantUnknown(t, http.StatusNotFound)
	c.createAndFollow(t)
}

// wantUnavailable requires that the API answers in time with 503, a message that begins with one of what, and
// Retry-After.
func (c *loadedCluster) wantUnavailable(t *testing.T, method, path, body string, what ...string) {
	t.Helper()
	var a answer
	testkit.Takes(t, errorWithin, func(int) {
		a = c.owner().Call(t, method, path, body).Want(t, http.StatusServiceUnavailable)
	})
	message, _ := a.Body["message"].(string)
	if !slices.ContainsFunc(what, func(w string) bool { return strings.HasPrefix(message, w+" cannot be ") }) {
		t.Errorf("the message begins with none of %q: %v", what, a)
	}
	wantRetryAfter(t, a)
}

// wantUnknown requires that the edge answers a visit of an unknown link in time and with this status.
func (c *loadedCluster) wantUnknown(t *testing.T, status int) {
	t.Helper()
	var a answer
	testkit.Takes(t, errorWithin, func(int) {
		a = c.visit(t, http.MethodGet, fmt.Sprintf("/unknown%d", c.random.Uint32()))
		if err := a.IsStatus(status); err != nil {
			t.Error(err)
		}
	})
	if status == http.StatusServiceUnavailable {
		wantRetryAfter(t, a)
	}
}

func wantRetryAfter(t *testing.T, a answer) {
	t.Helper()
	if _, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil {
		t.Errorf("Retry-After: %v: %v", err, a)
	}
}

// killEdge kills the edge several times. Without a broker, the clicks wait in the segments of several killed processes.
func (c *loadedCluster) killEdge(t *testing.T) {
	edge := c.program("edge")
	for range 2 {
		c.pause(time.Second)
		c.crash(t, edge)
		for c.random.IntN(2) == 0 { // also kill it before it is ready
			edge.launch(t)
			c.pause(200 * time.Millisecond)
			edge.kill(t)
		}
		edge.start(t)
	}
}

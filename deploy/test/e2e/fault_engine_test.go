//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// outageEnv is an environment variable: how long the broker is down in its test, such as 1m.
const outageEnv = "LINKSTREAM_TEST_OUTAGE"

const (
	defaultOutage = 12 * time.Second
	errorWithin   = 5 * time.Second // for an answer that says that an engine is down
)

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
		fault{"ClickHouse down", func() { c.stopClickHouse(t) }},
		fault{"Postgres down", func() { c.stopPostgres(t) }},
	)
	c.restartWithoutEngines(t)
	c.settle(t)
}

// stopBroker stops the broker for a long time: the spool grows, and links are created and followed as before.
func (c *loadedCluster) stopBroker(t *testing.T) {
	outage := defaultOutage
	if value := os.Getenv(outageEnv); value != "" {
		var err error
		outage, err = time.ParseDuration(value)
		testkit.Must(t, err)
	}
	edge := c.program("edge")
	c.pause(time.Second)
	testkit.Must(t, c.kafka.Stop())
	var pending float64
	for range 2 {
		<-time.After(outage / 2)
		now := edge.metric(t, gaugePending)
		if now <= pending {
			t.Errorf("%v clicks are in the spool, %v were before", now, pending)
		}
		pending = now
		c.createAndFollow(t)
	}
	t.Logf("%v clicks are in the spool when the broker starts again", pending)
	testkit.Must(t, c.kafka.Start(t.Context()))
	edge.awaitMetric(t, gaugePending, func(now float64) bool { return now < pending/10 })
}

func (c *loadedCluster) stopClickHouse(t *testing.T) {
	restarted := false // the api, without ClickHouse
	for _, takeDown := range []func() error{c.clickhouse.Stop, c.clickhouse.Kill} {
		c.pause(time.Second)
		testkit.Must(t, takeDown())
		for range 2 {
			c.wantUnavailable(t, http.MethodGet, "/api/v1/links", "", "Clicks")
			c.wantUnavailable(t, http.MethodGet, "/api/v1/stats/"+c.links[0], "", "Clicks")
			c.createAndFollow(t) // needs no ClickHouse, nor does the readiness of the api
			testkit.Must(t, call(t, http.MethodGet, c.program("api").ops+"/readyz", "").IsStatus(http.StatusOK))
			c.pause(time.Second)
			if api := c.program("api"); !restarted {
				api.stop(t)
				api.start(t)
				restarted = true
			}
		}
		testkit.Must(t, c.clickhouse.Start(t.Context()))
		testkit.Succeeds(t, func() error { return c.owner().Get(t, "/api/v1/links").IsStatus(http.StatusOK) })
	}
}

// stopPostgres also invalidates links in the edge's cache while the edge cannot look them up again.
func (c *loadedCluster) stopPostgres(t *testing.T) {
	for _, takeDown := range []func() error{c.postgres.Stop, c.postgres.Kill} {
		c.pause(time.Second)
		testkit.Must(t, takeDown())
		c.invalidateLinks(t)
		for range 2 {
			c.wantUnknown(t, http.StatusServiceUnavailable)
			// Which of them the answer names depends on what the API has cached of the token and its limit.
			what := []string{"Links", "API tokens", "The rate limit"}
			c.wantUnavailable(t, http.MethodGet, "/api/v1/links", "", what...)
			c.wantUnavailable(t, http.MethodGet, "/api/v1/stats/"+c.links[0], "", what...)
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
	for range 3 {
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

package e2e_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// outageEnv is an environment variable: how long the broker is down in its test, such as 1m.
const outageEnv = "LINKSTREAM_TEST_OUTAGE"

const defaultOutage = 12 * time.Second

// TestFaults makes engines and services under load fail as they do in production. Each redirect that was answered must
// be counted exactly once. A visit that a kill interrupted may be counted or not. Each fault has a cluster of its own.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name string
		test func(*testing.T)
	}{
		{"all faults in random order", testFaultSequence}, // the longest test first
		{"edge killed", testEdgeKilled},
		{"broker killed", testBrokerKilled},
		{"ingest workers take over from each other", testIngestTakeover},
		{"ingest worker killed during inserts", testIngestKilled},
		{"broker stopped", testBrokerStopped},
		{"ClickHouse down", testClickHouseDown},
		{"Postgres down", testPostgresDown},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			fault.test(t)
		})
	}
}

// testBrokerStopped stops the broker for a long time: the spool grows, and links are created and followed as before.
func testBrokerStopped(t *testing.T) {
	outage := defaultOutage
	if value := os.Getenv(outageEnv); value != "" {
		var err error
		outage, err = time.ParseDuration(value)
		testkit.Must(t, err)
	}
	c := startLoadedCluster(t)
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
	c.finish(t)
}

func testBrokerKilled(t *testing.T) {
	c := startLoadedCluster(t)
	for range 2 {
		c.pause(2 * time.Second)
		testkit.Must(t, c.kafka.Kill())
		c.pause(time.Second)
		testkit.Must(t, c.kafka.Start(t.Context()))
	}
	c.finish(t)
}

// testPostgresDown also invalidates links in the edge's cache while the edge cannot look them up again.
func testPostgresDown(t *testing.T) {
	c := startLoadedCluster(t)
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
	c.finish(t)
}

func testClickHouseDown(t *testing.T) {
	c := startLoadedCluster(t)
	for _, takeDown := range []func() error{c.clickhouse.Stop, c.clickhouse.Kill} {
		c.pause(time.Second)
		testkit.Must(t, takeDown())
		for range 2 {
			c.wantUnavailable(t, http.MethodGet, "/api/v1/links", "", "Clicks")
			c.wantUnavailable(t, http.MethodGet, "/api/v1/stats/"+c.links[0], "", "Clicks")
			c.createAndFollow(t) // does not need ClickHouse
			c.pause(time.Second)
		}
		testkit.Must(t, c.clickhouse.Start(t.Context()))
		c.program("api").awaitReady(t)
		c.owner().get(t, "/api/v1/links").want(t, http.StatusOK)
	}
	c.finish(t)
}

// testEdgeKilled kills the edge several times, first with and then without a broker. Without one, the clicks wait in the
// spool segments of several killed processes.
func testEdgeKilled(t *testing.T) {
	c := startLoadedCluster(t)
	edge := c.program("edge")
	killSeveralTimes := func() {
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
	killSeveralTimes()
	testkit.Must(t, c.kafka.Stop())
	killSeveralTimes()
	testkit.Must(t, c.kafka.Start(t.Context()))
	c.finish(t)
}

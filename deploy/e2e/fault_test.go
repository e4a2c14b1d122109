package e2e_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"linkstream/deploy/testengines"
)

// outageEnv is an environment variable: how long the broker is away in its test, as in 1m. The default keeps a run of
// all tests short.
const outageEnv = "LINKSTREAM_TEST_OUTAGE"

const defaultOutage = 12 * time.Second

// TestFaults does to real engines and to services under load what happens to them in operation. Whatever happens, each
// redirect that was answered is counted, once. Of those that a kill cut off any number may count. Each fault happens to
// a cluster of its own; as many tests run at the same time as there are processors.
func TestFaults(t *testing.T) {
	for _, name := range []string{testengines.PostgresEnv, testengines.KafkaEnv, testengines.ClickHouseEnv, testengines.ClickHouseHTTPEnv} {
		t.Setenv(name, "") // what runs there is not ours to stop
	}
	for _, fault := range []struct {
		name string
		test func(*testing.T)
	}{
		{"all in turn", testFaultsInTurn}, // the longest first
		{"broker killed", testBrokerKilled},
		{"ingest workers fight", testIngestWorkersFight},
		{"ingest worker killed in batches", testIngestKilled},
		{"broker stopped", testBrokerStopped},
		{"edge killed", testEdgeKilled},
		{"ClickHouse away", testClickHouseAway},
		{"Postgres away", testPostgresAway},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			fault.test(t)
		})
	}
}

// testBrokerStopped stops the broker for long: the spool grows, and links are made and followed as ever.
func testBrokerStopped(t *testing.T) {
	outage := defaultOutage
	if value := os.Getenv(outageEnv); value != "" {
		var err error
		outage, err = time.ParseDuration(value)
		must(t, err)
	}
	r := startTrial(t)
	edge := r.node("edge")
	r.rest(time.Second)
	must(t, r.kafka.Stop())
	var pending float64
	for range 2 {
		<-time.After(outage / 2)
		now := edge.metric(t, gaugePending)
		if now <= pending {
			t.Errorf("%v clicks are in the spool, %v were before", now, pending)
		}
		pending = now
		r.follow(t)
	}
	t.Logf("%v clicks are in the spool when the broker comes back", pending)
	must(t, r.kafka.Start(t.Context()))
	edge.awaitMetric(t, gaugePending, func(now float64) bool { return now < pending/10 })
	r.settle(t)
}

func testBrokerKilled(t *testing.T) {
	r := startTrial(t)
	for range 2 {
		r.rest(2 * time.Second)
		must(t, r.kafka.Kill())
		r.rest(time.Second)
		must(t, r.kafka.Start(t.Context()))
	}
	r.settle(t)
}

// testPostgresAway also has the edge hear of changes that it cannot look up then.
func testPostgresAway(t *testing.T) {
	r := startTrial(t)
	for _, down := range []func() error{r.postgres.Stop, r.postgres.Kill} {
		r.rest(time.Second)
		must(t, down())
		r.announce(t)
		for range 2 {
			r.wantUnknown(t, http.StatusServiceUnavailable)
			// What the API remembers of the token and of its limit decides how far a request comes.
			what := []string{"Links", "API tokens", "The rate limit"}
			r.wantUnavailable(t, http.MethodGet, "/api/v1/links", "", what...)
			r.wantUnavailable(t, http.MethodGet, "/api/v1/stats/"+r.links[0], "", what...)
			r.wantUnavailable(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/"}`, what...)
			r.rest(time.Second)
		}
		must(t, r.postgres.Start(t.Context()))
		for _, service := range []string{"edge", "api"} {
			r.node(service).awaitReady(t)
		}
		r.wantUnknown(t, http.StatusNotFound)
		r.follow(t)
	}
	r.settle(t)
}

func testClickHouseAway(t *testing.T) {
	r := startTrial(t)
	for _, down := range []func() error{r.clickhouse.Stop, r.clickhouse.Kill} {
		r.rest(time.Second)
		must(t, down())
		for range 2 {
			r.wantUnavailable(t, http.MethodGet, "/api/v1/links", "", "Clicks")
			r.wantUnavailable(t, http.MethodGet, "/api/v1/stats/"+r.links[0], "", "Clicks")
			r.follow(t) // needs no clicks
			r.rest(time.Second)
		}
		must(t, r.clickhouse.Start(t.Context()))
		r.node("api").awaitReady(t)
		r.owner().get(t, "/api/v1/links").want(t, http.StatusOK)
	}
	r.settle(t)
}

// testEdgeKilled kills the edge, at last while its clicks have nowhere to go: then they wait in the spools of several
// processes that have died.
func testEdgeKilled(t *testing.T) {
	r := startTrial(t)
	edge := r.node("edge")
	killSeveralTimes := func() {
		for range 3 {
			r.rest(time.Second)
			r.crash(t, edge)
			for r.random.IntN(2) == 0 { // some starts are killed before they are ready
				edge.launch(t)
				r.rest(200 * time.Millisecond)
				edge.kill(t)
			}
			edge.start(t)
		}
	}
	killSeveralTimes()
	must(t, r.kafka.Stop())
	killSeveralTimes()
	must(t, r.kafka.Start(t.Context()))
	r.settle(t)
}

//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// cluster is a system of services on engines that no other test uses, so that the test may stop and kill each of them.
// It begins with one program of each service.
type cluster struct {
	*system
	postgres, kafka, clickhouse *testengines.Engine // nil if the test does not touch them, and others use them as well
}

// startCluster returns a cluster that is ready. settings are variables.
func startCluster(t *testing.T, settings ...string) *cluster {
	t.Helper()
	lent := engines.Lend(t)
	c := &cluster{postgres: lent.Postgres, kafka: lent.Kafka, clickhouse: lent.ClickHouse}
	c.system = newServices(t, engineSettings(lent.PostgresDatabase, lent.Kafka.Addr, lent.ClickHouseDatabase),
		append([]string{defaultLookups}, settings...)...)
	c.start(t)
	return c
}

// TestWebhooksOfClicks kills all services, the broker and Postgres, with two processes of the api: both are members
// of the group that reads for webhooks.
func TestWebhooksOfClicks(t *testing.T) {
	t.Parallel()
	c := startCluster(t, webhooksAllowed, sessionSetting)
	c.startAnother(t, "api")
	testWebhooksOfClicks(t, c.system, func(t *testing.T) {
		c.killEach(t)
		for _, engine := range []*testengines.Engine{c.kafka, c.postgres} {
			testkit.Must(t, engine.Kill())
			<-time.After(2 * time.Second)
			testkit.Must(t, engine.Start(t.Context()))
			c.awaitReady(t)
		}
	})
}

// restartWithoutEngines starts the services while all engines are down.
func (c *loadedCluster) restartWithoutEngines(t *testing.T) {
	for _, p := range c.programs {
		c.lost += c.losses(t, p)
	}
	c.stop(t)
	engines := []*testengines.Engine{c.postgres, c.kafka, c.clickhouse}
	for _, e := range engines {
		testkit.Must(t, e.Stop())
	}
	for service, engine := range map[string]string{"edge": "Postgres", "api": "Postgres", "ingest": "ClickHouse"} {
		p := c.program(service)
		p.env = append(p.env, "LINKSTREAM_EDGE_SNAPSHOT=false") // otherwise the edge serves what it had cached: see TestWarmRestart
		p.launch(t)
		t.Run(service+" says what it waits for", func(t *testing.T) {
			testkit.Eventually(t, "log says: waiting for "+engine, func() bool {
				return p.process.Output.Contains("waiting for " + engine)
			})
			wantWaiting(t, p, engine)
		})
	}
	testkit.Must(t, c.clickhouse.Start(t.Context()))
	t.Run("ingest says what it waits for next", func(t *testing.T) { wantWaiting(t, c.program("ingest"), "Kafka") })
	for _, e := range engines {
		testkit.Must(t, e.Start(t.Context()))
	}
	c.awaitReady(t)
	c.createAndFollow(t)
}

// wantWaiting requires that a service is alive, reports the engine it waits for, and asks clients to retry.
func wantWaiting(t *testing.T, p *program, engine string) {
	t.Helper()
	if err := call(t, http.MethodGet, p.ops+"/healthz", "").IsStatus(http.StatusOK); err != nil {
		t.Error(err)
	}
	reason := "waiting for " + engine
	if p.name == "edge" {
		reason = engine // it serves what it can meanwhile
	}
	testkit.Succeeds(t, func() error {
		a := call(t, http.MethodGet, p.ops+"/readyz", "")
		if a.Status != http.StatusServiceUnavailable || !strings.Contains(a.Raw, reason) {
			return fmt.Errorf("no %q: %v", reason, a)
		}
		return nil
	})
	if p.base == "" { // ingest has no clients
		return
	}
	path := "/api/v1/links"
	if p.name == "edge" {
		path = "/waiting" // a hash
	}
	a := call(t, http.MethodGet, p.base+path, "")
	if err := a.IsStatus(http.StatusServiceUnavailable); err != nil {
		t.Error(err)
	}
	wantRetryAfter(t, a)
	if message, _ := a.Body["message"].(string); p.name == "api" && message == "" {
		t.Errorf("no message: %v", a)
	}
}

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/deploy/testengines"
	"linkstream/deploy/testengines/enginetest"
)

// cluster is a system of services on engines of its own, so that a test may stop and kill each of them. It begins with
// one node of each service.
type cluster struct {
	*system
	postgres, kafka, clickhouse *testengines.Engine
}

// startCluster returns a cluster that is ready. Where the environment leads to an engine, a parallel test cannot call it.
func startCluster(t *testing.T, settings ...string) *cluster {
	t.Helper()
	c := &cluster{postgres: enginetest.Own(t, testengines.StartPostgres), kafka: enginetest.Own(t, testengines.StartKafka),
		clickhouse: enginetest.Own(t, testengines.StartClickHouse)}
	c.system = newServices(t, engineSettings(c.postgres.Addr, c.kafka.Addr, c.clickhouse.Addr), settings...)
	c.start(t)
	return c
}

func TestServicesWaitForTheirEngines(t *testing.T) {
	c := startCluster(t)
	c.stop(t)
	engines := []*testengines.Engine{c.postgres, c.kafka, c.clickhouse}
	for _, e := range engines {
		if err := e.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for service, engine := range map[string]string{"edge": "Postgres", "api": "Postgres", "ingest": "ClickHouse"} {
		n := c.node(service)
		n.launch(t)
		t.Run(service+" says what it waits for", func(t *testing.T) {
			eventually(t, readyWithin, func() error {
				if said := n.process.output.String(); !strings.Contains(said, "waiting for "+engine) {
					return fmt.Errorf("no word of %s in:\n%s", engine, said)
				}
				return nil
			})
			wantWaiting(t, n, engine)
		})
	}
	must(t, c.clickhouse.Start(t.Context()))
	t.Run("ingest says what it waits for next", func(t *testing.T) { wantWaiting(t, c.node("ingest"), "Kafka") })
	for _, e := range engines {
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.nodes {
		n.awaitReady(t)
	}
	c.owner().alias(t, "known", "https://example.com/")
	c.click(t, "known")
	c.owner().waitTotal(t, "known", 1)
}

// wantWaiting requires that a service is alive, says what it waits for, and tells clients to come back.
func wantWaiting(t *testing.T, n *node, engine string) {
	t.Helper()
	if err := call(t, http.MethodGet, n.bases[0]+"/healthz", "").isStatus(http.StatusOK); err != nil {
		t.Error(err)
	}
	eventually(t, readyWithin, func() error {
		a := call(t, http.MethodGet, n.bases[0]+"/readyz", "")
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.raw, "waiting for "+engine) {
			return fmt.Errorf("no word of %s: %v", engine, a)
		}
		return nil
	})
	a := call(t, http.MethodGet, n.bases[0]+"/api/v1/links", "")
	if err := a.isStatus(http.StatusServiceUnavailable); err != nil {
		t.Error(err)
	}
	wantRetryAfter(t, a)
	if n.program == "api" && text(a.body["message"]) != nil {
		t.Errorf("no message: %v", a)
	}
}

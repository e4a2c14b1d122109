package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"linkstream/deploy/local"
	"linkstream/deploy/local/localtest"
)

// cluster is a system of services on engines of its own, so that a test may stop and kill each of them. It begins with
// one node of each service.
type cluster struct {
	*system
	postgres, kafka, clickhouse *local.Engine
}

// startCluster returns a cluster that is ready. Where the environment leads to an engine, a parallel test cannot call it.
func startCluster(t *testing.T, settings ...string) *cluster {
	t.Helper()
	c := &cluster{postgres: localtest.Own(t, local.Postgres), kafka: localtest.Own(t, local.Kafka),
		clickhouse: localtest.Own(t, local.ClickHouse)}
	c.system = newServices(t, engineSettings(c.postgres.Addr, c.kafka.Addr, c.clickhouse.Addr), settings...)
	c.start(t)
	return c
}

func TestServicesWaitForTheirEngines(t *testing.T) {
	c := startCluster(t)
	c.stop(t)
	engines := []*local.Engine{c.postgres, c.kafka, c.clickhouse}
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
		})
	}
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

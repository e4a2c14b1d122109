package e2e_test

import (
	"testing"

	"linkstream/deploy/local"
	"linkstream/deploy/local/localtest"
)

// cluster is a system of services on engines of its own, so that a test may stop and kill each of them. Its nodes are
// services[0] of each kind, which s.api, s.ingest and s.edge lead to, and what addNode has added.
type cluster struct {
	*system
	postgres, kafka, clickhouse *local.Engine
}

// startCluster returns a cluster that is ready. It must not be called by a parallel test.
func startCluster(t *testing.T, settings ...string) *cluster {
	t.Helper()
	c := &cluster{postgres: localtest.Own(t, local.Postgres), kafka: localtest.Own(t, local.Kafka),
		clickhouse: localtest.Own(t, local.ClickHouse)}
	c.system = newServices(t, engineSettings(c.postgres.Addr, c.kafka.Addr, c.clickhouse.Addr), settings...)
	c.start(t)
	return c
}

// node returns the first node of a service: "edge", "api" or "ingest".
func (c *cluster) node(service string) *node {
	for _, n := range c.nodes {
		if n.program == service {
			return n
		}
	}
	return nil
}

// startNode adds one more node of a service to the cluster and returns it when it is ready, with its base URL.
func (c *cluster) startNode(t *testing.T, service string) (n *node, base string) {
	t.Helper()
	base = "http://" + freeAddress(t)
	n = c.add(service, base)
	n.start(t)
	return n, base
}

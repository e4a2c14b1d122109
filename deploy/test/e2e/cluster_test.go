//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
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

// restartWithoutEngines starts the services while all engines are down. They say what they wait for.
func (c *loadedCluster) restartWithoutEngines(t *testing.T) {
	for _, p := range c.programs {
		p.wantNoLosses(t)
	}
	c.stop(t)
	engines := []*testengines.Engine{c.postgres, c.kafka, c.clickhouse}
	for _, e := range engines {
		testkit.Must(t, e.Stop())
	}
	for service, engine := range map[string]string{"edge": "Postgres", "api": "Postgres", "ingest": "ClickHouse"} {
		p := c.program(service)
		p.env = append(p.env, "LINKSTREAM_EDGE_SNAPSHOT=false") // otherwise the edge serves what it had cached
		p.launch(t)
		testkit.Succeeds(t, func() error {
			_, err := launch.Get(p.ops + "/readyz")
			if said := fmt.Sprint(err); !strings.Contains(said, "503") || !strings.Contains(said, engine) {
				return fmt.Errorf("%s does not wait for %s: %w", service, engine, err)
			}
			return nil
		})
		testkit.Must(t, call(t, http.MethodGet, p.ops+"/healthz", "").IsStatus(http.StatusOK))
	}
	for _, e := range engines {
		testkit.Must(t, e.Start(t.Context()))
	}
	c.awaitReady(t)
	c.createAndFollow(t)
}

package e2e_test

import (
	"syscall"
	"testing"
	"time"

	"linkstream/deploy/testengines"
	"linkstream/schema/testkit"
)

// testFaultSequence causes each fault once, in random order. A fault does not wait until the cluster has recovered from
// the one before.
func testFaultSequence(t *testing.T) {
	c := startLoadedCluster(t, ingestSettings...)
	second, _ := c.startAnother(t, "ingest")
	first, edge, api := c.program("ingest"), c.program("edge"), c.program("api")
	engineDown := func(engine *testengines.Engine, takeDown func(*testengines.Engine) error) func() {
		return func() {
			testkit.Must(t, takeDown(engine))
			c.pause(3 * time.Second)
			testkit.Must(t, engine.Start(t.Context()))
		}
	}
	killed := func(p *program) func() {
		return func() {
			p.awaitReady(t)
			c.crash(t, p)
			c.pause(time.Second)
			p.launch(t)
		}
	}
	stop, kill := (*testengines.Engine).Stop, (*testengines.Engine).Kill
	faults := []struct {
		name  string
		cause func()
	}{
		{"broker stopped", engineDown(c.kafka, stop)},
		{"broker killed", engineDown(c.kafka, kill)},
		{"Postgres stopped", engineDown(c.postgres, stop)},
		{"Postgres killed", engineDown(c.postgres, kill)},
		{"ClickHouse stopped", engineDown(c.clickhouse, stop)},
		{"ClickHouse killed", engineDown(c.clickhouse, kill)},
		{"api killed", killed(api)},
		{"one ingest worker killed", killed(first)},
		{"the other ingest worker killed", killed(second)},
		{"ingest worker suspended", func() {
			first.awaitReady(t)
			first.process.signal(t, syscall.SIGSTOP)
			awaitPartitions(t, second, partitions) // the group removes the first worker when its session expires
			first.process.signal(t, syscall.SIGCONT)
		}},
		{"edge killed", func() {
			killed(edge)()
			edge.awaitReady(t)
			c.warmCache(t) // otherwise visitors rightly get 503 while Postgres is down
		}},
	}
	c.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, fault := range faults {
		c.pause(time.Second)
		begin := time.Now()
		fault.cause()
		t.Logf("%s: %v", fault.name, time.Since(begin).Round(time.Millisecond))
	}
	c.finish(t)
}

//go:build engines && nightly

package e2e_test

import (
	"syscall"
	"testing"
	"time"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// testFaultSequence causes each fault once, in random order. A fault does not wait until the cluster has recovered from
// the one before.
func testFaultSequence(t *testing.T) {
	c := startLoadedCluster(t, programSettings...)
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
	restarted := func(cause func()) func() { // otherwise visitors rightly get 503 while Postgres is down
		return func() {
			cause()
			edge.awaitReady(t)
			c.warmCache(t)
		}
	}
	stop, kill := (*testengines.Engine).Stop, (*testengines.Engine).Kill
	faults := []fault{
		{"broker stopped", engineDown(c.kafka, stop)},
		{"broker killed", engineDown(c.kafka, kill)},
		{"broker's disk full", func() { c.fillBrokerDisk(t) }},
		{"Postgres stopped", engineDown(c.postgres, stop)},
		{"Postgres killed", engineDown(c.postgres, kill)},
		{"ClickHouse stopped", engineDown(c.clickhouse, stop)},
		{"ClickHouse killed", engineDown(c.clickhouse, kill)},
		{"ClickHouse's disk full", func() { c.fillClickHouseDisk(t) }},
		{"api killed", killed(api)},
		{"one ingest worker killed", killed(first)},
		{"the other ingest worker killed", killed(second)},
		{"ingest worker suspended", func() {
			first.awaitReady(t)
			first.process.Signal(t, syscall.SIGSTOP)
			awaitPartitions(t, second, partitions) // the group removes the first worker when its session expires
			first.process.Signal(t, syscall.SIGCONT)
		}},
		{"ingest worker's clock set", func() { c.setIngestClock(t) }},
		{"edge killed", restarted(killed(edge))},
		{"edge gone for good", func() { c.loseEdge(t) }},
		{"edge's clock set", func() { c.setEdgeClock(t) }},
		{"spool's disk full", func() { c.fillSpool(t, edge) }},
		{"topic replaced", restarted(func() { c.replaceCounted(t) })},
		{"click store set back", func() { c.restoreStopped(t) }},
	}
	c.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, f := range faults {
		c.pause(time.Second)
		c.cause(t, f)
	}
	c.settle(t)
}

// fillBrokerDisk fills the broker's disk, so that it ends itself, and starts it again with room.
func (c *loadedCluster) fillBrokerDisk(t *testing.T) {
	testkit.Must(t, c.kafka.LimitFiles(1))
	c.awaitRise(t, "edge", counterShipping, 1)
	c.awaitRise(t, "edge", gaugePending, 100)
	testkit.Must(t, c.kafka.Kill())
	testkit.Must(t, c.kafka.Start(t.Context()))
}

// fillClickHouseDisk fills ClickHouse's disk, and starts ClickHouse again with room. Without a restart, some versions
// keep parts whose marks they could not write: see deploy/manual/backup.md.
func (c *loadedCluster) fillClickHouseDisk(t *testing.T) {
	c.pause(time.Second)
	testkit.Must(t, c.clickhouse.LimitFiles(1))
	c.awaitRise(t, "ingest", counterFailures, 1)
	testkit.Must(t, c.clickhouse.Kill()) // whatever is left of it
	testkit.Must(t, c.clickhouse.Start(t.Context()))
}

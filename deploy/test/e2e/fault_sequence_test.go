//go:build engines && nightly

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// TestFaults causes each fault of engines and programs under load once, in random order, each perhaps before the
// cluster has recovered from the one before. Each redirect that was answered must be counted exactly once. A visit
// that a kill interrupted may be counted or not. Faults that need no real engine are those of deploy/test/simulation.
func TestFaults(t *testing.T) {
	t.Parallel()
	const short = "LINKSTREAM_INGEST_MAX_WAIT=5ms" // an insert runs at almost any time
	c := startLoadedCluster(t, segmentSetting, sessionSetting, short)
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
		{"edge killed", func() {
			killed(edge)()
			edge.awaitReady(t)
			c.warmCache(t) // otherwise visitors rightly get 503 while Postgres is down
		}},
		{"edge gone for good", func() { c.loseEdge(t) }},
	}
	c.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, f := range faults {
		c.pause(time.Second)
		c.cause(t, f)
	}
	c.stopAndVerify(t)
}

// loseEdge kills another edge, which cannot reach the broker, for good. The command drain sends the clicks in its
// spool.
func (c *loadedCluster) loseEdge(t *testing.T) {
	t.Helper()
	const visits = 50
	gone := c.add(t, "edge", "http://"+testkit.FreeAddress(t))
	c.programs = slices.DeleteFunc(c.programs, func(p *program) bool { return p == gone })
	reachable := gone.env
	gone.env = append(slices.Clone(reachable), "LINKSTREAM_KAFKA_BROKERS="+testkit.FreeAddress(t))
	gone.start(t)
	for i := range visits {
		hash := c.links[i%len(c.links)]
		a := call(t, http.MethodGet, gone.base+"/"+hash, "", "Host", address(c.edge))
		if err := a.IsStatus(http.StatusFound); err != nil {
			t.Fatal(err)
		}
		c.note(target{hash: hash, answered: 1})
	}
	c.crash(t, gone)
	gone.env = reachable
	for _, want := range []int{visits, 0} {
		out, errOut, code := gone.command(t, "drain", setting(gone.env, "LINKSTREAM_SPOOL_DIR"))
		if code != 0 || out != fmt.Sprintf("%d clicks shipped\n", want) {
			t.Errorf("drain: exit code %d, want %d clicks\nstdout: %s\nstderr: %s", code, want, out, errOut)
		}
	}
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

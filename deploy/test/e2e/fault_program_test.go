//go:build engines && nightly

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// programSettings also keep an insert running at almost any time.
var programSettings = []string{segmentSetting, sessionSetting, "LINKSTREAM_INGEST_MAX_WAIT=5ms"}

// testProgramFaults does not touch the engines, which are those that all systems share.
func testProgramFaults(t *testing.T) {
	s := newServices(t, sharedEngines(t), programSettings...)
	s.start(t)
	c := startLoaded(t, &cluster{system: s})
	c.causeEach(t,
		fault{"faults of edges while the click store is set back", func() {
			restore := c.startRestore(t)
			c.killEdge(t)
			c.loseEdge(t)
			c.fillSpool(t, c.program("edge"))
			c.setEdgeClock(t)
			restore()
		}},
		fault{"ingest workers take over from each other", func() { c.takeOver(t) }},
		fault{"topic replaced while everything runs", func() { c.replaceRunning(t) }},
	)
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

// fillSpool fills the disk that a program's spool is on until it drops clicks.
func (c *loadedCluster) fillSpool(t *testing.T, p *program) {
	t.Helper()
	c.allow(counterDropped)
	p.awaitReady(t)
	p.limitFiles(t, 1)
	c.awaitRise(t, "edge", counterDropped, 1)
	if _, err := launch.Get(p.ops + "/readyz"); err == nil {
		t.Errorf("%s is ready although it drops clicks", p.name)
	}
	p.limitFiles(t, testengines.NoLimit)
	p.awaitReady(t)
}

// setEdgeClock sets the edge's clock so far ahead that the broker refuses its batches, back, and right again.
func (c *loadedCluster) setEdgeClock(t *testing.T) {
	t.Helper()
	edge := c.program("edge")
	edge.setClock(t, 2*time.Hour)
	c.awaitRise(t, "edge", counterShipping, 1)
	c.awaitRise(t, "edge", gaugePending, 100)
	edge.setClock(t, -26*time.Hour)
	c.awaitRise(t, "edge", counterShipped, 100)
	edge.setClock(t, 0)
}

// setIngestClock sets a worker's clock months ahead and back. What it counts must not depend on it.
func (c *loadedCluster) setIngestClock(t *testing.T) {
	worker := c.program("ingest")
	for _, ahead := range []time.Duration{60 * 24 * time.Hour, -60 * 24 * time.Hour, 0} {
		worker.setClock(t, ahead)
		c.awaitRise(t, "ingest", counterCounted, 300)
	}
}

// takeOver makes two workers take partitions from each other. One is suspended until the other has all partitions, and
// then continues the batch that it was working on. Then the other one is killed.
func (c *loadedCluster) takeOver(t *testing.T) {
	a := c.program("ingest")
	b, _ := c.startAnother(t, "ingest")
	awaitPartitions(t, a, partitions/2)
	awaitPartitions(t, b, partitions/2)
	c.pause(500 * time.Millisecond)
	a.process.Signal(t, syscall.SIGSTOP)
	awaitPartitions(t, b, partitions)
	c.pause(500 * time.Millisecond)
	a.process.Signal(t, syscall.SIGCONT)
	awaitPartitions(t, a, partitions/2)
	c.crash(t, b)
	awaitPartitions(t, a, partitions)
	b.start(t)
	awaitPartitions(t, b, partitions/2)
}

// limitFiles makes writes of the running program fail as on a full disk: those beyond so many bytes of a file.
func (p *program) limitFiles(t *testing.T, bytes uint64) {
	t.Helper()
	testkit.Must(t, testengines.LimitFiles(p.process.Cmd.Process.Pid, bytes))
}

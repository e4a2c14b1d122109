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

// partitions is the number of partitions of the topic of clicks.
const partitions = 4

// segmentSetting makes the spool and so its files small: lanes often need a new one.
const segmentSetting = "LINKSTREAM_SPOOL_MAX_BYTES=8388608"

// sessionSetting lets a consumer group remove a dead member as soon as brokers allow.
const sessionSetting = "LINKSTREAM_KAFKA_SESSION_TIMEOUT=6s"

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

// killEdge kills the edge several times. Without a broker, the clicks wait in the segments of several killed processes.
func (c *loadedCluster) killEdge(t *testing.T) {
	edge := c.program("edge")
	for range 3 {
		c.pause(time.Second)
		c.crash(t, edge)
		for c.random.IntN(2) == 0 { // also kill it before it is ready
			edge.launch(t)
			c.pause(200 * time.Millisecond)
			edge.kill(t)
		}
		edge.start(t)
	}
}

// loseEdge kills another edge, which cannot reach the broker, for good. The command drain sends the clicks in its spool.
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

func TestIngestWorkersStandBy(t *testing.T) {
	t.Parallel()
	s := newServices(t, sharedEngines(t), "LINKSTREAM_KAFKA_PARTITIONS=1")
	second := s.add(t, "ingest", "http://"+testkit.FreeAddress(t))
	s.start(t) // requires that both are ready
	first := s.program("ingest")
	testkit.Succeeds(t, func() error {
		if a, b := first.metric(t, gaugePartitions), second.metric(t, gaugePartitions); a+b != 1 {
			return fmt.Errorf("two workers have %v and %v partitions", a, b)
		}
		return nil
	})
	idle, busy := first, second
	if first.metric(t, gaugePartitions) == 1 {
		idle, busy = second, first
	}
	idle.awaitReady(t)
	busy.stop(t)
	awaitPartitions(t, idle, 1)
	s.owner().Alias(t, "known", "https://example.com/")
	s.click(t, "known")
	s.owner().WaitTotal(t, "known", 1)
}

func awaitPartitions(t *testing.T, worker *program, want float64) {
	t.Helper()
	worker.awaitMetric(t, gaugePartitions, func(n float64) bool { return n == want })
}

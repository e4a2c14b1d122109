package e2e_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// partitions is the number of partitions of the topic of clicks.
const partitions = 4

// ingestSettings spread the clicks over all partitions, keep an insert running at almost any time, and let the consumer
// group remove a dead worker soon.
var ingestSettings = []string{"LINKSTREAM_SPOOL_LANES=4", "LINKSTREAM_INGEST_MAX_WAIT=5ms",
	"LINKSTREAM_KAFKA_SESSION_TIMEOUT=6s"}

func testIngestKilled(t *testing.T) {
	c := startLoadedCluster(t, ingestSettings...)
	worker := c.program("ingest")
	for range 3 {
		// It gets the partitions of its predecessor when that one's session has expired.
		worker.awaitMetric(t, counterCounted, func(n float64) bool { return n > 0 })
		c.pause(500 * time.Millisecond)
		c.crash(t, worker)
		for c.random.IntN(2) == 0 {
			worker.launch(t)
			c.pause(500 * time.Millisecond)
			worker.kill(t)
		}
		worker.start(t)
	}
	c.finish(t)
}

// testIngestTakeover makes two workers take partitions from each other. One is suspended until the other has all
// partitions, and then continues the batch that it was working on. Then the other one is killed.
func testIngestTakeover(t *testing.T) {
	c := startLoadedCluster(t, ingestSettings...)
	a := c.program("ingest")
	b, _ := c.startAnother(t, "ingest")
	awaitPartitions(t, a, partitions/2)
	awaitPartitions(t, b, partitions/2)
	c.pause(500 * time.Millisecond)
	a.process.signal(t, syscall.SIGSTOP)
	awaitPartitions(t, b, partitions)
	c.pause(500 * time.Millisecond)
	a.process.signal(t, syscall.SIGCONT)
	awaitPartitions(t, a, partitions/2)
	c.crash(t, b)
	awaitPartitions(t, a, partitions)
	b.start(t)
	awaitPartitions(t, b, partitions/2)
	c.finish(t)
}

func TestIngestWorkersStandBy(t *testing.T) {
	t.Parallel()
	s := newServices(t, sharedEngines(t), "LINKSTREAM_KAFKA_PARTITIONS=1")
	second := s.add(t, "ingest", "http://"+freeAddress(t))
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
	s.owner().alias(t, "known", "https://example.com/")
	s.click(t, "known")
	s.owner().waitTotal(t, "known", 1)
}

func awaitPartitions(t *testing.T, worker *program, want float64) {
	t.Helper()
	worker.awaitMetric(t, gaugePartitions, func(n float64) bool { return n == want })
}

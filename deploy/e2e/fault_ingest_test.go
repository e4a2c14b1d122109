package e2e_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// partitions is how many the topic of clicks has.
const partitions = 4

// ingestSettings let each partition have clicks, have an insert be under way at almost any time, and have a worker that
// died be given up soon.
var ingestSettings = []string{"LINKSTREAM_SPOOL_LANES=4", "LINKSTREAM_INGEST_MAX_WAIT=5ms",
	"LINKSTREAM_KAFKA_SESSION_TIMEOUT=6s"}

func testIngestKilled(t *testing.T) {
	r := startTrial(t, ingestSettings...)
	worker := r.node("ingest")
	for range 3 {
		// The group gives a dead worker's partitions to the next one when its session has run out.
		worker.awaitMetric(t, counterCounted, func(n float64) bool { return n > 0 })
		r.rest(500 * time.Millisecond)
		r.crash(t, worker)
		for r.random.IntN(2) == 0 {
			worker.launch(t)
			r.rest(500 * time.Millisecond)
			worker.kill(t)
		}
		worker.start(t)
	}
	r.settle(t)
}

// testIngestWorkersFight has two workers take partitions from one another: one of them stands still for so long that
// the other gets its partitions, and then goes on with the batch that it was at; then the other one is killed.
func testIngestWorkersFight(t *testing.T) {
	r := startTrial(t, ingestSettings...)
	a := r.node("ingest")
	b, _ := r.startNode(t, "ingest")
	awaitPartitions(t, a, partitions/2)
	awaitPartitions(t, b, partitions/2)
	r.rest(500 * time.Millisecond)
	a.process.signal(t, syscall.SIGSTOP)
	awaitPartitions(t, b, partitions)
	r.rest(500 * time.Millisecond)
	a.process.signal(t, syscall.SIGCONT)
	awaitPartitions(t, a, partitions/2)
	r.crash(t, b)
	awaitPartitions(t, a, partitions)
	b.start(t)
	awaitPartitions(t, b, partitions/2)
	r.settle(t)
}

func TestIngestWorkersStandBy(t *testing.T) {
	t.Parallel()
	s := newServices(t, sharedEngines(t), "LINKSTREAM_KAFKA_PARTITIONS=1")
	second := s.add("ingest", "http://"+freeAddress(t))
	s.start(t) // requires that both are ready
	first := s.node("ingest")
	eventually(t, countedWithin, func() error {
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

func awaitPartitions(t *testing.T, worker *node, want float64) {
	t.Helper()
	worker.awaitMetric(t, gaugePartitions, func(n float64) bool { return n == want })
}

package e2e_test

import (
	"syscall"
	"testing"
	"time"
)

// partitions is how many the topic of clicks has.
const partitions = 4

// ingestSettings let each partition have clicks, and have an insert be under way at almost any time.
var ingestSettings = []string{"LINKSTREAM_SPOOL_LANES=4", "LINKSTREAM_INGEST_MAX_WAIT=5ms"}

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

func awaitPartitions(t *testing.T, worker *node, want float64) {
	t.Helper()
	worker.awaitMetric(t, gaugePartitions, func(n float64) bool { return n == want })
}

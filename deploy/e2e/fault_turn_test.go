package e2e_test

import (
	"syscall"
	"testing"
	"time"

	"linkstream/deploy/testengines"
)

// sessionTimeout is more than the time after which the consumer group gives up a worker that it does not hear from.
const sessionTimeout = 7 * time.Second

// testFaultsInTurn has everything fail once, in random order. What fails next does not wait until all have got over
// what failed before.
func testFaultsInTurn(t *testing.T) {
	r := startTrial(t, ingestSettings...)
	second, _ := r.startNode(t, "ingest")
	first, edge, api := r.node("ingest"), r.node("edge"), r.node("api")
	away := func(engine *testengines.Engine, down func(*testengines.Engine) error) func() {
		return func() {
			must(t, down(engine))
			r.rest(3 * time.Second)
			must(t, engine.Start(t.Context()))
		}
	}
	killed := func(n *node) func() {
		return func() {
			n.awaitReady(t)
			r.crash(t, n)
			r.rest(time.Second)
			n.launch(t)
		}
	}
	stop, kill := (*testengines.Engine).Stop, (*testengines.Engine).Kill
	faults := []struct {
		name   string
		happen func()
	}{
		{"broker stopped", away(r.kafka, stop)},
		{"broker killed", away(r.kafka, kill)},
		{"Postgres stopped", away(r.postgres, stop)},
		{"Postgres killed", away(r.postgres, kill)},
		{"ClickHouse stopped", away(r.clickhouse, stop)},
		{"ClickHouse killed", away(r.clickhouse, kill)},
		{"api killed", killed(api)},
		{"one ingest worker killed", killed(first)},
		{"the other ingest worker killed", killed(second)},
		{"an ingest worker stands still", func() {
			first.awaitReady(t)
			first.process.signal(t, syscall.SIGSTOP)
			<-time.After(sessionTimeout)
			first.process.signal(t, syscall.SIGCONT)
		}},
		{"edge killed", func() {
			killed(edge)()
			edge.awaitReady(t)
			r.warm(t) // else its next visitors are right to get 503 while Postgres is away
		}},
	}
	r.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, fault := range faults {
		r.rest(time.Second)
		begin := time.Now()
		fault.happen()
		t.Logf("%s: %v", fault.name, time.Since(begin).Round(time.Millisecond))
	}
	r.settle(t)
}

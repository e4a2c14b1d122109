package simulation_test

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

var (
	oneSeed = flag.Uint64("seed", 0, "simulate this `seed` alone")
	seeds   = flag.Uint64("seeds", 3000, "simulate this `number` of seeds")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fault is a kind of thing that can go wrong.
type fault string

const (
	unknownPartitions   fault = "the number of partitions is unknown"
	refused             fault = "a batch is refused"
	delayedBatch        fault = "a batch is reported as failed and arrives later"
	lateArrival         fault = "a delayed batch arrives while others are sent"
	repeatedBatch       fault = "a batch arrives twice"
	lostAcknowledgement fault = "an acknowledgement is lost"
	topicGrows          fault = "the topic grows"
	edgeKilled          fault = "the edge is killed"
	edgeKilledInFlight  fault = "the edge is killed with a batch in flight"
	edgeRestarted       fault = "the edge is restarted"
	diskWiped           fault = "the edge's disk is wiped when nothing is pending"
	fetchFailure        fault = "a fetch fails"
	fetchBreak          fault = "a fetch breaks off"
	positionFailure     fault = "the store does not say its position"
	insertFailure       fault = "an insert fails"
	insertAnswerLost    fault = "an insert succeeds and is reported as failed"
	workerKilled        fault = "a worker is killed"
	workersOverlap      fault = "another worker counts a partition"
	overtakenWorker     fault = "a worker inserts what another one has counted"
)

var faults = []fault{unknownPartitions, refused, delayedBatch, lateArrival, repeatedBatch, lostAcknowledgement,
	topicGrows, edgeKilled, edgeKilledInFlight, edgeRestarted, diskWiped, fetchFailure, fetchBreak, positionFailure,
	insertFailure, insertAnswerLost, workerKilled, workersOverlap, overtakenWorker}

// fault reports, once in so many times, that a fault of this kind happens.
func (s *simulation) fault(kind fault, oneIn int) bool {
	if s.quiet || s.random.IntN(oneIn) > 0 {
		return false
	}
	s.happened[kind]++
	return true
}

// TestExactlyOnce is the promise: each click that was appended is counted once, whatever fails.
func TestExactlyOnce(t *testing.T) {
	first, last := uint64(1), *seeds
	if *oneSeed > 0 {
		first, last = *oneSeed, *oneSeed
	}
	happened := make(map[fault]int)
	clicks := int64(0)
	for seed := first; seed <= last; seed++ {
		s := simulate(t, seed, broken{})
		if found := append(s.miscounts, s.violations...); len(found) > 0 {
			t.Fatalf("%d violations, the first of them:\n%s\nTo see them again:\n"+
				"go test ./deploy/simulation -run TestExactlyOnce -seed=%d",
				len(found), strings.Join(found[:min(len(found), 10)], "\n"), seed)
		}
		for kind, n := range s.happened {
			happened[kind] += n
		}
		clicks += s.edge.appended
	}
	t.Logf("%d seeds, %d clicks", last-first+1, clicks)
	for _, kind := range faults {
		t.Logf("%7d times: %s", happened[kind], kind)
		if *oneSeed == 0 && uint64(happened[kind]) < *seeds/10 {
			t.Errorf("too rare to prove anything: %s", kind)
		}
	}
}

func TestSeedsRepeat(t *testing.T) {
	for seed := range uint64(20) {
		a, b := simulate(t, seed, broken{}), simulate(t, seed, broken{})
		if a.trace.Sum64() != b.trace.Sum64() || !maps.Equal(a.happened, b.happened) {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

// broken says which rule of the protocol is broken, so that the simulation can show that it would notice.
type broken struct {
	forgets   bool // workers do not get the lanes' marks back
	blind     bool // the store counts a batch wherever the partition is
	moves     bool // a shipper goes on with the next clicks after a failure
	overtakes bool // a shipper does not wait for one batch before it sends the next
	rebinds   bool // a shipper tries again at another partition
	identity  bool // a process on a new disk has the identity of an earlier one
}

func TestSimulationCatches(t *testing.T) {
	const within = 100 // seeds
	rules := map[string]broken{
		"a worker that forgets the marks":                   {forgets: true},
		"a store that does not compare the position":        {blind: true},
		"a shipper that does not send the same batch again": {moves: true},
		"a shipper with two batches of a lane in flight":    {overtakes: true},
		"a lane that changes its partition":                 {rebinds: true},
		"an identity that is used twice":                    {identity: true},
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		t.Run("catches "+name, func(t *testing.T) {
			for seed := uint64(1); seed <= within; seed++ {
				if s := simulate(t, seed, rules[name]); len(s.miscounts) > 0 {
					t.Logf("seed %d: %s", seed, s.miscounts[0])
					return
				}
			}
			t.Fatalf("not within %d seeds", within)
		})
	}
}

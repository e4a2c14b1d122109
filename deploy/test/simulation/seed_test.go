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
	oneSeed = flag.Uint64("seed", 0, "simulate only this `seed`")
	seeds   = flag.Uint64("seeds", 500, "`number` of seeds to simulate, a fifth of it with -short")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fault is a kind of fault that the simulation injects or provokes.
type fault string

const (
	unknownPartitions   fault = "the number of partitions is unknown"
	refusedBatch        fault = "a batch is refused"
	delayedBatch        fault = "a batch is reported as failed and arrives later"
	lateArrival         fault = "a delayed batch arrives while others are sent"
	repeatedBatch       fault = "a batch arrives twice"
	lostAcknowledgement fault = "an acknowledgement is lost"
	topicGrows          fault = "the topic gets another partition"
	edgeKilled          fault = "the edge is killed"
	edgeKilledInFlight  fault = "the edge is killed with a batch in flight"
	edgeRestarted       fault = "the edge is restarted"
	diskWiped           fault = "the edge's disk is wiped while no click is pending"
	failedFetch         fault = "a fetch fails"
	brokenFetch         fault = "a fetch breaks after some records"
	failedPosition      fault = "the store does not answer with its position"
	failedInsert        fault = "an insert fails"
	lostInsertAnswer    fault = "an insert succeeds and is reported as failed"
	workerKilled        fault = "a worker is killed"
	workersOverlap      fault = "a second worker counts the same partition"
	logTruncated        fault = "a broker loses the end of a log"
	logReplaced         fault = "a log is replaced by an empty one"
	insertConflict      fault = "a worker inserts records that another one has counted"
	recordsDeleted      fault = "retention deletes the oldest records of a log"
	topicShrinks        fault = "the topic loses a partition"
	lostPartition       fault = "a batch is sent to a partition that the topic has lost"
	storeRestored       fault = "the store is set back to an earlier state"
	staleRead           fault = "a replica answers with an earlier position"
	expiredInsert       fault = "an insert expires"
	repeatedToken       fault = "an insert has the token of an earlier one"
	workerSuspended     fault = "a worker is suspended"
	refusedSize         fault = "a batch is too large for the topic"
	refusedClick        fault = "a click is too large for the topic"
	clockSet            fault = "the edge's clock is set"
	refusedTime         fault = "a batch is refused because it comes from the future"
	powerLost           fault = "the edge loses power"
	pageLost            fault = "the disk has no block for a page of a segment"
	diskFull            fault = "the disk is full"
	droppedClick        fault = "a click is dropped because the disk is full"
)

var faults = []fault{unknownPartitions, refusedBatch, delayedBatch, lateArrival, repeatedBatch, lostAcknowledgement,
	topicGrows, edgeKilled, edgeKilledInFlight, edgeRestarted, diskWiped, failedFetch, brokenFetch, failedPosition,
	failedInsert, lostInsertAnswer, workerKilled, workersOverlap, insertConflict, logTruncated, logReplaced, recordsDeleted,
	topicShrinks, lostPartition, storeRestored, staleRead, expiredInsert, repeatedToken, workerSuspended, refusedSize,
	refusedClick, clockSet, refusedTime, powerLost, pageLost, diskFull, droppedClick}

// fault reports whether to inject a fault, with a probability of 1 in oneIn.
func (s *simulation) fault(kind fault, oneIn int) bool {
	if s.faultsOff || s.random.IntN(oneIn) > 0 {
		return false
	}
	s.occur(kind)
	return true
}

// Each appended click is counted exactly once, and each kind of fault occurs often enough to matter.
func TestExactlyOnce(t *testing.T) { wantExactlyOnce(t, "TestExactlyOnce", simulate, faults) }

// wantExactlyOnce runs the seeds of a kind of simulation, whose test has this name.
func wantExactlyOnce(t *testing.T, name string, simulate func(*testing.T, uint64, broken) *simulation, want []fault) {
	first, last := uint64(1), *seeds
	if testing.Short() {
		last /= 5
	}
	if *oneSeed > 0 {
		first, last = *oneSeed, *oneSeed
	}
	occurred := make(map[fault]int)
	clicks := int64(0)
	for seed := first; seed <= last; seed++ {
		s := simulate(t, seed, broken{})
		if n := len(s.miscounted) + len(s.violations); n > 0 {
			t.Fatalf("%d violations, the first ones:\n%s\nTo reproduce:\n"+
				"go test ./deploy/test/simulation -run '^%s$' -v -seed=%d", n, s.found(), name, seed)
		}
		for kind, n := range s.occurred {
			occurred[kind] += n
		}
		clicks += s.edge.appended
	}
	t.Logf("%d seeds, %d clicks", last-first+1, clicks)
	for _, kind := range want {
		t.Logf("%7d times: %s", occurred[kind], kind)
		if *oneSeed == 0 && uint64(occurred[kind]) < last/10 {
			t.Errorf("too rare to prove anything: %s", kind)
		}
	}
}

// found returns the first violations.
func (s *simulation) found() string {
	found := append(slices.Clone(s.miscounted), s.violations...)
	return strings.Join(found[:min(len(found), 10)], "\n")
}

func TestSeedsAreReproducible(t *testing.T) {
	for seed := range uint64(20) {
		a, b := simulate(t, seed, broken{}), simulate(t, seed, broken{})
		if a.trace.Sum64() != b.trace.Sum64() || !maps.Equal(a.occurred, b.occurred) {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

// broken names the rules of the protocol that a simulation breaks, to show that it would notice.
type broken struct {
	losesMarks     bool // the store does not have marks
	ignoresBase    bool // the store inserts a batch at any Base
	skips          bool // a shipper continues with the next clicks after an error
	pipelines      bool // a shipper sends the next batch before the previous one has arrived
	rebinds        bool // a shipper retries on another partition
	trustsLogs     bool // a worker takes every log for the one that was counted
	unfencedEpochs bool // the store begins an epoch at any Base
	reusesIdentity bool // a process on an empty disk draws an earlier incarnation
	forgetsMoves   bool // a worker looks for a lane's mark in its own partition only
	neverExpires   bool // an insert is valid for ever
	fewTokens      bool // the store remembers one token
	keepsTime      bool // a batch keeps the time of its first attempt
	neverSplits    bool // a batch that is too large is sent again as it is

	unsyncedFiles    bool // clicks are never written to the disk
	unsyncedNames    bool // folders are never written to the disk
	unsyncedSpool    bool // the name of the spool's folder is not written to the disk
	unsyncedFolders  bool // the names of the folders in the spool are not written to the disk
	unsyncedBindings bool // a lane's partition is not written to the disk at once
	leavesUnsynced   bool // what a killed process left is not written to the disk
	dropsSilently    bool // a click for which there is no room is answered as if it were recorded

	releasesEarly   bool // one machine: a shipper releases clicks before they are counted
	marksApart      bool // one machine: the marks change in a transaction of their own
	leavesCommits   bool // one machine: what a killed process has committed is not synced before the next one relies on it
	unsyncedCommits bool // one machine: a transaction is not on the disk when it has succeeded

	losesHeardMarks bool // one machine: the store of webhooks does not have marks
	tellsOnce       bool // one machine: clicks are released though telling webhooks has failed

	often func(*simulation) // an event that happens more often than otherwise, because few seeds would notice
}

func TestSimulationCatchesBrokenProtocols(t *testing.T) {
	wantCaught(t, simulate, map[string]broken{
		"no marks":                             {losesMarks: true},
		"inserts at any base":                  {ignoresBase: true},
		"batches that are skipped on an error": {skips: true},
		"two batches of a lane in flight":      {pipelines: true},
		"lanes that change their partition":    {rebinds: true},
		"logs that are not verified":           {trustsLogs: true},
		"epochs that begin at any base":        {unfencedEpochs: true},
		"incarnations that are drawn twice":    {reusesIdentity: true},
		"lanes that move unnoticed":            {forgetsMoves: true, often: (*simulation).moveLanes},
		"inserts that never expire":            {neverExpires: true, often: (*simulation).clickAndSuspend},
		"tokens that are soon forgotten":       {fewTokens: true, often: (*simulation).clickAndSuspend},
		"batches that keep a wrong time":       {keepsTime: true},
		"batches that are never split":         {neverSplits: true},
		"clicks that are never synced":         {unsyncedFiles: true},
		"folders that are never synced":        {unsyncedNames: true},
		"a spool whose parent is not synced":   {unsyncedSpool: true},
		"folders whose parent is not synced":   {unsyncedFolders: true},
		"bindings that are not synced":         {unsyncedBindings: true, often: (*simulation).growAndLosePower},
		"leftovers that are never synced":      {leavesUnsynced: true},
		"clicks that a full disk drops":        {dropsSilently: true},
	})
}

// wantCaught requires that a kind of simulation notices each broken protocol.
func wantCaught(t *testing.T, simulate func(*testing.T, uint64, broken) *simulation, protocols map[string]broken) {
	const within = 400 // seeds
	for _, name := range slices.Sorted(maps.Keys(protocols)) {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= within; seed++ {
				if s := simulate(t, seed, protocols[name]); len(s.miscounted) > 0 {
					t.Logf("seed %d: %s", seed, s.miscounted[0])
					return
				}
			}
			t.Fatalf("not caught within %d seeds", within)
		})
	}
}

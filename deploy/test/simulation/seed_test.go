//go:build !race

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
	seeds   = flag.Uint64("seeds", 60, "`number` of seeds to simulate")
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
	failedInsert, lostInsertAnswer, workerKilled, workersOverlap, insertConflict, logTruncated, logReplaced,
	recordsDeleted, topicShrinks, lostPartition, storeRestored, staleRead, expiredInsert, repeatedToken, workerSuspended,
	refusedSize, refusedClick, clockSet, refusedTime, powerLost, pageLost, diskFull, droppedClick}

// fault reports whether to inject a fault, with a probability of 1 in oneIn.
func (s *simulation) fault(kind fault, oneIn int) bool {
	if s.faultsOff || s.random.IntN(oneIn) > 0 {
		return false
	}
	s.occur(kind)
	return true
}

// Each appended click is counted exactly once, and each kind of fault occurs often enough to matter.
func TestExactlyOnce(t *testing.T) { wantExactlyOnce(t, simulate, 1, faults) }

// wantExactlyOnce runs the seeds of a kind of simulation.
func wantExactlyOnce(t *testing.T, simulate func(*testing.T, uint64, broken) *simulation, part uint64, want []fault) {
	occurred, clicks := make(map[fault]int), int64(0)
	eachSeed(t, part, func(seed uint64) (wrong string) {
		s := simulate(t, seed, broken{})
		for kind, n := range s.occurred {
			occurred[kind] += n
		}
		clicks += s.edge.appended
		return s.found()
	})
	t.Logf("%d clicks", clicks)
	wantOften(t, part, occurred, want)
}

// eachSeed simulates a part of the seeds, until one shows that something is wrong.
func eachSeed(t *testing.T, part uint64, simulate func(seed uint64) (wrong string)) {
	t.Helper()
	first, last := uint64(1), seedsOf(part)
	if *oneSeed > 0 {
		first, last = *oneSeed, *oneSeed
	}
	for seed := first; seed <= last; seed++ {
		if wrong := simulate(seed); wrong != "" {
			t.Fatalf("%s\nTo reproduce:\ngo test ./deploy/test/simulation -run '^%s$' -v -seed=%d", wrong, t.Name(), seed)
		}
	}
	t.Logf("%d seeds", last-first+1)
}

func seedsOf(part uint64) uint64 { return *seeds / part }

// wantOften requires that each kind of fault has occurred once in ten seeds.
func wantOften[F ~string](t *testing.T, part uint64, occurred map[F]int, want []F) {
	t.Helper()
	for _, kind := range want {
		t.Logf("%7d times: %s", occurred[kind], kind)
		if *oneSeed == 0 && uint64(occurred[kind]) < seedsOf(part)/10 {
			t.Errorf("too rare to prove anything: %s", kind)
		}
	}
}

// found returns the first violations.
func (s *simulation) found() string {
	found := append(slices.Clone(s.miscounted), s.violations...)
	return strings.Join(found[:min(len(found), 10)], "\n")
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

	losesQueuedMarks bool // one machine: the store of webhooks does not have marks
	queuesOnce       bool // one machine: clicks are released though queueing them for webhooks has failed

	often func(*simulation) // an event that happens more often than otherwise, because few seeds would notice
}

func TestSimulationCatchesBrokenProtocols(t *testing.T) {
	wantCaught(t, 300, miscounts(simulate), map[string]broken{
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

// wantCaught requires that a kind of simulation notices each broken protocol within so many seeds: at least three times
// as many as it needs.
func wantCaught[B any](
	t *testing.T, within uint64, simulate func(*testing.T, uint64, B) (wrong string), protocols map[string]B,
) {
	for _, name := range slices.Sorted(maps.Keys(protocols)) {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= within; seed++ {
				if wrong := simulate(t, seed, protocols[name]); wrong != "" {
					t.Logf("seed %d: %s", seed, wrong)
					return
				}
			}
			t.Fatalf("not caught within %d seeds", within)
		})
	}
}

// miscounts returns the first click that a simulation counts more or less than once.
func miscounts(simulate func(*testing.T, uint64, broken) *simulation) func(*testing.T, uint64, broken) (wrong string) {
	return func(t *testing.T, seed uint64, b broken) string {
		if s := simulate(t, seed, b); len(s.miscounted) > 0 {
			return s.miscounted[0]
		}
		return ""
	}
}

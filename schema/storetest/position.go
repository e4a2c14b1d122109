package storetest

import (
	"math/rand/v2"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestPositions checks the outcomes that PositionStore documents beyond ClickStore, and accepts any choice that it
// leaves open: Position.Next may be less than the last batch's Next by the records that were dropped at its end.
func TestPositions[S schema.PositionStore](t *testing.T, open Open[S]) {
	positions := func(t *testing.T) (schema.PositionStore, func() schema.PositionStore) {
		store, reopen := open(t)
		return store, func() schema.PositionStore { return reopen() }
	}
	run(t, positions, positionBehaviours)
	run(t, positions, epochBehaviours)
	t.Run("positions survive reopening", func(t *testing.T) { keepsPositions(t, positions) })
}

var positionBehaviours = []behaviour[schema.PositionStore]{
	{"Position of a new partition is 0", startsAtZero},
	{"InsertClicks accepts gaps of dropped records", passesDroppedRecords},
	{"InsertClicks does not compare marks, and keeps the highest", keepsMarksAboveSeqs},
	{"InsertClicks counts each partition separately, even for the same lane", keepsPartitionsApart},
	{"the mark of a lane is the highest of all partitions", findsHighestMark},
	{"InsertClicks rejects a batch before the position", refusesStaleBatch},
	{"InsertClicks rejects a batch beyond the position", refusesBatchBeyond},
	{"InsertClicks counts each record once while workers compete", countsOnceWhileWorkersFight},
	{"InsertClicks counts several partitions concurrently", countsPartitionsAtOnce},
}

func startsAtZero(t *testing.T, store schema.PositionStore) {
	model := newModel()
	model.partition(0)
	model.partition(7)
	model.check(t, store)
	model.insert(t, store, 7, clicksOf(1, 3)...)
	model.check(t, store)
}

func passesDroppedRecords(t *testing.T, store schema.PositionStore) {
	model := newModel()
	dropping := func(base int64) *schema.ClickBatch {
		b := new(schema.ClickBatch)
		b.Reset(0, base)
		for i, c := range clicksOf(1, 3) { // two records are dropped before each click, and five after the last
			appendClick(b, base+int64(3*i)+2, model.partition(0).marks[c.lane]+uint64(i)+1, c)
		}
		b.Next += 5
		return b
	}
	// A worker continues at the Next of its last batch or reads the position, which may be less. The store accepts both.
	for round := range 4 {
		base := model.partition(0).next
		if round%2 == 1 {
			position, err := store.Position(t.Context(), 0)
			testkit.Must(t, err)
			base = position.Next
		}
		b := dropping(base)
		testkit.Must(t, store.InsertClicks(t.Context(), b))
		model.count(b)
		model.checkCounts(t, store)
	}
	model.check(t, store)
}

func keepsMarksAboveSeqs(t *testing.T, store schema.PositionStore) {
	model := newModel()
	batch := new(schema.ClickBatch)
	for _, seqs := range [][]uint64{{5, 9, 7}, {8, 6}, {12}} {
		batch.Reset(0, model.partition(0).next)
		for _, seq := range seqs {
			appendClick(batch, batch.Next, seq, clicksOf(1, 1)[0])
		}
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
		model.count(batch)
		model.checkCounts(t, store)
	}
	model.check(t, store)
}

func keepsPartitionsApart(t *testing.T, store schema.PositionStore) {
	model := newModel()
	for i := range 3 {
		for _, partition := range []int{0, 1, 12, 1000} {
			model.insert(t, store, partition, clicksOf(1, 1+partition%7+i)...)
		}
	}
	model.partition(2)
	model.check(t, store)
}

func findsHighestMark(t *testing.T, store schema.PositionStore) {
	want := func(lane schema.Lane, seq uint64) {
		t.Helper()
		got, err := store.LaneMarks(t.Context(), []schema.Lane{lane})
		testkit.Must(t, err)
		testkit.Equal(t, "mark", got, []uint64{seq})
	}
	model := newModel()
	moved := lane(1, 0) // the lane of clicksOf(1, …)
	want(moved, 0)
	model.insert(t, store, 3, clicksOf(1, 20)...)
	want(moved, 20)
	for _, other := range []schema.Lane{lane(1, 1), lane(2, 0)} {
		want(other, 0)
	}
	later := model.batch(1, clicksOf(1, 5)...)
	testkit.Must(t, store.InsertClicks(t.Context(), later))
	want(moved, 25)
	model.insert(t, store, 2, clicksOf(1, 3)...)
	want(moved, 25)
	model.insert(t, store, 2, clicksOf(2, 7)...)
	want(lane(2, 0), 7)
}

func refusesStaleBatch(t *testing.T, store schema.PositionStore) {
	model := newModel()
	var stale []*schema.ClickBatch
	for round := range 4 {
		// Batches of workers that read more or fewer records than the one that succeeds.
		longer, shorter := model.batch(0, clicksOf(1, 20)...), model.batch(0, clicksOf(1, 3)...)
		stale = append(stale, longer, shorter)
		model.insert(t, store, 0, clicksOf(1, 10+round)...)
		for _, batch := range stale {
			testkit.WantCode(t, store.InsertClicks(t.Context(), batch), schema.CodeConflict)
		}
		model.checkCounts(t, store)
	}
	model.check(t, store)
}

func refusesBatchBeyond(t *testing.T, store schema.PositionStore) {
	model := newModel()
	model.insert(t, store, 0, clicksOf(1, 10)...)
	beyond := new(schema.ClickBatch)
	beyond.Reset(0, model.partition(0).next+1)
	for i, c := range clicksOf(1, 5) {
		appendClick(beyond, beyond.Next, uint64(i)+12, c)
	}
	testkit.WantCode(t, store.InsertClicks(t.Context(), beyond), schema.CodeConflict)
	model.check(t, store)
}

// countsOnceWhileWorkersFight counts all records of a partition by several independent workers.
func countsOnceWhileWorkersFight(t *testing.T, store schema.PositionStore) {
	const workers, records = 3, 600
	model := newModel()
	log := model.batch(0, randomClicks(rand.New(rand.NewPCG(7, 8)), records, 10)...)
	for _, err := range concurrently(workers, func(w int) error {
		random := rand.New(rand.NewPCG(9, uint64(w)))
		for {
			position, err := store.Position(t.Context(), 0)
			if err != nil || position.Next == records {
				return err
			}
			from := position.Next
			to := min(from+1+random.Int64N(40), records)
			err = store.InsertClicks(t.Context(), cut(log, from, to))
			if err != nil && schema.ErrorCode(err) != schema.CodeConflict {
				return err
			}
		}
	}) {
		testkit.Must(t, err)
	}
	model.count(log)
	model.check(t, store)
}

// cut returns the batch of the records from offset from to before offset to.
func cut(log *schema.ClickBatch, from, to int64) *schema.ClickBatch {
	b := &schema.ClickBatch{
		Partition: log.Partition, Base: from, Next: to, Offset: log.Offset[from:to], Lane: log.Lane[from:to],
		Seq: log.Seq[from:to], LinkID: log.LinkID[from:to], AccountID: log.AccountID[from:to],
		ClickedAt: log.ClickedAt[from:to], Visitor: log.Visitor[from:to],
	}
	for _, by := range schema.Dimensions() {
		*b.Names(by) = (*log.Names(by))[from:to]
	}
	return b
}

func countsPartitionsAtOnce(t *testing.T, store schema.PositionStore) {
	const partitions, rounds = 4, 5
	model := newModel()
	for round := range uint64(rounds) {
		batches := make([]*schema.ClickBatch, partitions)
		for i := range batches {
			batches[i] = model.batch(i, randomClicks(rand.New(rand.NewPCG(round, uint64(i))), 100, 10)...)
		}
		for i, err := range concurrently(partitions, func(i int) error {
			return store.InsertClicks(t.Context(), batches[i])
		}) {
			testkit.Must(t, err)
			model.count(batches[i])
		}
	}
	model.check(t, store)
}

func keepsPositions(t *testing.T, open Open[schema.PositionStore]) {
	store, reopen := open(t)
	model := newModel()
	for round := range 3 {
		stale := model.batch(1, clicksOf(2, 7)...)
		model.insert(t, store, 0, clicksOf(1, 5+round)...)
		model.insert(t, store, 1, clicksOf(1, 9)...)
		store = reopen()
		model.checkCounts(t, store)
		testkit.WantCode(t, store.InsertClicks(t.Context(), stale), schema.CodeConflict)
	}
	model.check(t, store)
}

package storetest

import (
	"math/rand/v2"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// countsOneOfConcurrentBatches inserts batches with one Base, as a worker and its zombie do. The batches have different
// lengths, so that they are not the same batch.
func countsOneOfConcurrentBatches(t *testing.T, store schema.ClickStore) {
	model := newModel()
	for range 5 {
		batches := make([]*schema.ClickBatch, 8)
		for i := range batches {
			batches[i] = model.batch(0, clicksOf(1, 10+i)...)
		}
		winner := onlyOne(t, concurrently(len(batches), func(i int) error {
			return store.InsertClicks(t.Context(), batches[i])
		}), schema.CodeConflict)
		model.count(batches[winner])
		model.checkCounts(t, store)
	}
	model.check(t, store)
}

// countsOnceWhileWorkersFight counts all records of a partition by several workers that do not know of each other.
func countsOnceWhileWorkersFight(t *testing.T, store schema.ClickStore) {
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
		Seq: log.Seq[from:to], LinkID: log.LinkID[from:to], AccountID: log.AccountID[from:to], ClickedAt: log.ClickedAt[from:to],
		Visitor: log.Visitor[from:to],
	}
	for _, by := range schema.Dimensions() {
		*b.Names(by) = (*log.Names(by))[from:to]
	}
	return b
}

func countsPartitionsAtOnce(t *testing.T, store schema.ClickStore) {
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

// agreesWhileInserting reads while batches are inserted, each of which adds the same number of clicks to the link.
func agreesWhileInserting(t *testing.T, store ClickStores) {
	const each = 25
	whileInserting(t, store, each, func() {
		before := countOf(t, store, spreadLink)
		stats, err := store.LinkStats(t.Context(), spreadLink)
		testkit.Must(t, err)
		after := countOf(t, store, spreadLink)
		if stats.TotalClicks < before || stats.TotalClicks > after {
			t.Fatalf("stats say %d between counts of %d and %d", stats.TotalClicks, before, after)
		}
		testkit.Equal(t, "clicks of half a batch", stats.TotalClicks%each, 0)
		testkit.Equal(t, "counts of half a batch", after%each, 0)
		sumsAgree(t, stats)
	})
}

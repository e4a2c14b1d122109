package storetest

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// countsOneOfConcurrentBatches inserts batches that begin with the same click, as a worker and its zombie do. The
// batches have different lengths, so that they are not the same batch.
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

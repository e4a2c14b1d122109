package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestCompaction checks that compact, which compacts everything that an empty store has counted by then, changes no result: counts,
// reports, positions and marks. More clicks are counted between two compactions.
func TestCompaction(t *testing.T, store ClickStores, compact func()) {
	model := newModel()
	random := rand.New(rand.NewPCG(13, 14))
	for round := range 2 {
		counted := model.batch(0, randomClicks(random, 300, 6)...)
		testkit.Must(t, store.InsertClicks(t.Context(), counted))
		model.count(counted)
		model.insert(t, store, 1, clicksOf(int64(round)+1, 7)...)
		model.insert(t, store, 1, spread(40)...)
		// A lane with a click whose account is not known, and one that begins in every log.
		unowned := clicksOf(spreadLink, 3)
		unowned[0].account, unowned[1].lane = 0, lane(byte(round), 99)
		b := model.nextEpoch(2, int64(5*round), unowned...)
		b.Next += 4 // records that were dropped
		testkit.Must(t, store.InsertClicks(t.Context(), b))
		model.count(b)
		for range 2 {
			compact()
			model.check(t, store)
			model.checkReports(t, store, epoch.AddDate(0, 0, 2))
			model.checkAccountReport(t, store, 0, time.Time{})
			for _, old := range []*schema.ClickBatch{counted, b} {
				testkit.WantCode(t, store.InsertClicks(t.Context(), old), schema.CodeConflict)
			}
		}
	}
	for _, moved := range []schema.Lane{lane(spreadLink, 0), lane(1, 0)} {
		want := uint64(0)
		for _, p := range model.partitions {
			want = max(want, p.marks[moved])
		}
		got, err := store.LaneMark(t.Context(), moved)
		testkit.Must(t, err)
		testkit.Equal(t, "mark in all partitions", got, want)
	}
}

package storetest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestCompaction checks that compact, which compacts everything that an empty store has counted by then, changes no
// result: counts, reports, positions and marks. More clicks are counted between two compactions.
func TestCompaction(t *testing.T, store ClickStores, compact func()) {
	model := newModel()
	random := rand.New(rand.NewPCG(13, 14))
	for round := range 2 {
		counted := model.batch(0, randomClicks(random, 300, 6)...)
		testkit.Must(t, store.InsertClicks(t.Context(), counted))
		model.count(counted)
		model.insert(t, store, 1, clicksOf(int64(round)+1, 7)...)
		model.insert(t, store, 1, spread(40)...)
		more := clicksOf(spreadLink, 3)
		more[1].lane = lane(byte(round), 99) // a lane that begins in every log
		b := model.nextEpoch(2, int64(5*round), more...)
		b.Next += 4 // records that were dropped
		testkit.Must(t, store.InsertClicks(t.Context(), b))
		model.count(b)
		model.set(t, store, randomHistories(random, 9)...)
		compact()
		model.check(t, store)
		model.checkReports(t, store, epoch.AddDate(0, 0, 2))
		model.checkDays(t, store, random)
		compact() // which finds nothing to do
		model.check(t, store)
		for _, old := range []*schema.ClickBatch{counted, b} {
			testkit.WantCode(t, store.InsertClicks(t.Context(), old), schema.CodeConflict)
		}
	}
	for _, moved := range []schema.Lane{lane(spreadLink, 0), lane(1, 0)} {
		want := uint64(0)
		for _, p := range model.partitions {
			want = max(want, p.marks[moved])
		}
		got, err := store.LaneMarks(t.Context(), []schema.Lane{moved})
		testkit.Must(t, err)
		testkit.Equal(t, "mark in all partitions", got, []uint64{want})
	}
}

// checkDays compares answers about UTC days, the unit of compacted months.
func (m *model) checkDays(t *testing.T, store ClickStores, random *rand.Rand) {
	t.Helper()
	links := slices.Sorted(maps.Keys(m.links))
	for range 6 {
		clicks := m.links[links[random.IntN(len(links))]].clicks
		q := randomQuery(random, time.UTC, clicks[random.IntN(len(clicks))])
		q.Bounds = slices.DeleteFunc(q.Bounds, func(at time.Time) bool { return at.Hour() != 0 })
		m.checkQuery(t, store, q)
	}
}

package storetest

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var epochBehaviours = []behaviour[schema.PositionStore]{
	{"InsertClicks begins a new epoch at any offset", beginsEpoch},
	{"InsertClicks rejects a batch of an earlier epoch", refusesEarlierEpoch},
	{"InsertClicks counts one of two batches that stay in an epoch and begin the next", countsOneOfTwoEpochs},
	{"InsertClicks rejects a batch that skips an epoch", refusesSkippedEpoch},
}

// nextEpoch returns the first batch of a partition's next log, which begins at an offset, without counting it.
func (m *model) nextEpoch(partition int, offset int64, clicks ...click) *schema.ClickBatch {
	b := m.batch(partition, clicks...)
	b.Epoch++
	for i := range b.Offset {
		b.Offset[i] = offset + int64(i)
	}
	b.Next = offset + int64(len(clicks))
	return b
}

func beginsEpoch(t *testing.T, store schema.PositionStore) {
	model := newModel()
	model.insert(t, store, 0, clicksOf(1, 20)...)
	model.insert(t, store, 1, clicksOf(1, 5)...)
	// Each log is shorter, as long or longer than the one before. Its first batch may end where that one ended.
	for i, offset := range []int64{0, 15, 17, 100, 0} {
		b := model.nextEpoch(0, offset, clicksOf(int64(i)+2, 3)...)
		testkit.Must(t, store.InsertClicks(t.Context(), b))
		model.count(b)
		model.checkCounts(t, store)
		for range 2 {
			model.insert(t, store, 0, clicksOf(int64(i)+2, 2)...)
			model.checkCounts(t, store)
		}
	}
	model.check(t, store)
}

func refusesEarlierEpoch(t *testing.T, store schema.PositionStore) {
	model := newModel()
	model.insert(t, store, 0, clicksOf(1, 20)...)
	stale := model.batch(0, clicksOf(1, 10)...)
	first := model.nextEpoch(0, 0, clicksOf(2, 20)...)
	testkit.Must(t, store.InsertClicks(t.Context(), first))
	model.count(first) // the position is offset 20 again
	for _, b := range []*schema.ClickBatch{stale, first} {
		testkit.WantCode(t, store.InsertClicks(t.Context(), b), schema.CodeConflict)
		model.checkCounts(t, store)
	}
	early := model.batch(0, clicksOf(3, 5)...)
	early.BaseEpoch, early.Epoch = 2, 2
	testkit.WantCode(t, store.InsertClicks(t.Context(), early), schema.CodeConflict)
	model.insert(t, store, 0, clicksOf(3, 5)...)
	model.check(t, store)
}

func countsOneOfTwoEpochs(t *testing.T, store schema.PositionStore) {
	model := newModel()
	model.insert(t, store, 0, clicksOf(1, 20)...)
	for range 5 {
		batches := []*schema.ClickBatch{model.batch(0, clicksOf(1, 10)...), model.nextEpoch(0, 0, clicksOf(2, 12)...)}
		winner := onlyOne(t, concurrently(len(batches), func(i int) error {
			return store.InsertClicks(t.Context(), batches[i])
		}), schema.CodeConflict)
		model.count(batches[winner])
		model.checkCounts(t, store)
	}
	model.check(t, store)
}

func refusesSkippedEpoch(t *testing.T, store schema.PositionStore) {
	model := newModel()
	model.insert(t, store, 0, clicksOf(1, 20)...)
	b := model.nextEpoch(0, 0, clicksOf(2, 3)...)
	b.Epoch++
	testkit.WantCode(t, store.InsertClicks(t.Context(), b), schema.CodeInternal)
	model.check(t, store)
}

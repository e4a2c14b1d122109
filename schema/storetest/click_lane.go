package storetest

import (
	"errors"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// checkLanes compares the counts of all lanes with the model.
func (m *model) checkLanes(t *testing.T, store schema.ClickStore) {
	t.Helper()
	want := map[schema.Lane]schema.LaneCount{}
	for _, p := range m.partitions {
		for lane, seq := range p.marks {
			if clicks := p.clicks[lane]; clicks > 0 { // not a mark that a test has only prepared
				sum := want[lane]
				want[lane] = schema.LaneCount{Lane: lane, Mark: max(sum.Mark, seq), Clicks: sum.Clicks + clicks}
			}
		}
	}
	testkit.Equal(t, "counts of lanes", laneCounts(t, store), want)
}

// laneCounts returns the counts of all lanes in the store.
func laneCounts(t *testing.T, store schema.ClickStore) map[schema.Lane]schema.LaneCount {
	t.Helper()
	all := map[schema.Lane]schema.LaneCount{}
	testkit.Must(t, store.LaneCounts(t.Context(), func(count schema.LaneCount) error {
		if _, twice := all[count.Lane]; twice {
			t.Errorf("lane %s comes twice", count.Lane)
		}
		all[count.Lane] = count
		return nil
	}))
	return all
}

func countsLanes(t *testing.T, store schema.ClickStore) {
	testkit.Equal(t, "lanes of a new store", len(laneCounts(t, store)), 0)
	model := newModel()
	model.insert(t, store, 3, clicksOf(1, 20)...)
	// The lane goes on in another partition, after a gap.
	model.partition(1).marks[lane(1, 0)] = 22
	model.insert(t, store, 1, clicksOf(1, 5)...)
	model.insert(t, store, 1, clicksOf(2, 7)...)
	model.check(t, store)
	sums, err := store.ClickSums(t.Context())
	testkit.Must(t, err)
	for name, clicks := range sums {
		testkit.Equal(t, "clicks in "+name, clicks, 32)
	}
	testkit.Equal(t, "there are sums", len(sums) > 0, true)
	testkit.Equal(t, "the lane with a gap", laneCounts(t, store)[lane(1, 0)],
		schema.LaneCount{Lane: lane(1, 0), Mark: 27, Clicks: 25})

	stop := errors.New("stop")
	calls := 0
	err = store.LaneCounts(t.Context(), func(schema.LaneCount) error { calls++; return stop })
	if calls != 1 || !errors.Is(err, stop) {
		t.Errorf("%d calls, error %v, although the first call returned an error", calls, err)
	}
}

func keepsGaps(t *testing.T, store schema.ClickStore) {
	found := epoch.UTC()
	gap := func(n uint32, first, last uint64) schema.Gap {
		return schema.Gap{Lane: lane(1, n), SeqRange: schema.SeqRange{First: first, Last: last}, Partition: 3,
			Offset: int64(last), Found: found}
	}
	want := func(n uint32, gaps ...schema.Gap) {
		t.Helper()
		got, err := store.LaneGaps(t.Context(), lane(1, n))
		testkit.Must(t, err)
		testkit.Equal(t, "gaps", got, gaps, nilOrEmpty)
	}
	want(0)
	model := newModel()
	insert := func(gaps ...schema.Gap) {
		t.Helper()
		b := model.batch(3, clicksOf(1, 5)...)
		b.Gaps = gaps
		testkit.Must(t, store.InsertClicks(t.Context(), b))
		model.count(b)
	}
	insert(gap(0, 20, 30), gap(1, 5, 5))
	insert()
	insert(gap(0, 7, 9))
	want(0, gap(0, 7, 9), gap(0, 20, 30))
	want(1, gap(1, 5, 5))
	want(2)
	// Another worker finds the same gap, when a batch is built again.
	insert(gap(0, 7, 9))
	want(0, gap(0, 7, 9), gap(0, 20, 30))
	model.check(t, store)

	var many []schema.Gap
	for n := range uint64(schema.MaxGaps) + 10 {
		many = append(many, gap(4, 3*n+1, 3*n+2))
	}
	insert(many...)
	want(4, many[:schema.MaxGaps]...)
}

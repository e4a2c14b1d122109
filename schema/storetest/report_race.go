package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// whileInserting calls read repeatedly while 20 batches of spread clicks are inserted.
func whileInserting(t *testing.T, store ClickStores, each int, read func()) {
	model := newModel()
	inserted := make(chan error, 1)
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		for i := range 20 {
			b := model.batch(i%2, spread(each)...)
			if err := store.InsertClicks(t.Context(), b); err != nil {
				inserted <- err
				return
			}
			model.count(b)
		}
		inserted <- nil
	}()
	for !done.Load() {
		read()
	}
	testkit.Must(t, <-inserted)
	model.check(t, store)
}

func reportsWhileInserting(t *testing.T, store ClickStores) {
	const each = 24 // of which eight are by bots
	whileInserting(t, store, each, func() {
		before, err := store.LinkStats(t.Context(), spreadLink)
		testkit.Must(t, err)
		report, err := store.Report(t.Context(), Days(1, []int64{spreadLink}, epoch, 6))
		testkit.Must(t, err)
		after, err := store.LinkStats(t.Context(), spreadLink)
		testkit.Must(t, err)
		all := sumPeriods(report.Series)
		if total := all.Total(); total < before.TotalClicks || total > after.TotalClicks {
			t.Fatalf("the report says %d between stats of %d and %d", total, before.TotalClicks, after.TotalClicks)
		}
		testkit.Equal(t, "clicks of half a batch", all.Total()%each, 0)
		testkit.Equal(t, "bots", all.Bots, all.Total()/3)
		for by, names := range report.Names {
			testkit.Equal(t, fmt.Sprintf("sum of %s", by), sumNames(names), all.People)
		}
	})
}

func reportsAccountWhileInserting(t *testing.T, store ClickStores) {
	const each = 24
	whileInserting(t, store, each, func() {
		before := countOf(t, store, spreadLink)
		report, err := store.Report(t.Context(), Days(1, nil, epoch, 6))
		testkit.Must(t, err)
		after := countOf(t, store, spreadLink)
		all := sumPeriods(report.Series)
		if total := all.Total(); total < before || total > after {
			t.Fatalf("the report says %d between counts of %d and %d", total, before, after)
		}
		testkit.Equal(t, "clicks of half a batch", all.Total()%each, 0)
		links := int64(0)
		for _, link := range report.Links {
			links += link.Total
		}
		testkit.Equal(t, "sum of links", links, all.Total())
		for by, names := range report.Names {
			testkit.Equal(t, fmt.Sprintf("sum of %s", by), sumNames(names), all.People)
		}
	})
}

func sumPeriods(series []schema.Period) (all schema.Period) {
	for _, p := range series {
		all.Add(p)
	}
	return all
}

func sumNames(names []schema.NameCount) (total int64) {
	for _, name := range names {
		total += name.Total
	}
	return total
}

package storetest

import (
	"sync/atomic"
	"testing"
	"time"

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
		report, err := store.LinkReport(t.Context(), spreadLink, time.Time{})
		testkit.Must(t, err)
		after, err := store.LinkStats(t.Context(), spreadLink)
		testkit.Must(t, err)
		people, bots := sumDays(report.Days)
		if total := people + bots; total < before.TotalClicks || total > after.TotalClicks {
			t.Fatalf("the report says %d between stats of %d and %d", total, before.TotalClicks, after.TotalClicks)
		}
		testkit.Equal(t, "clicks of half a batch", (people+bots)%each, 0)
		testkit.Equal(t, "bots", bots, (people+bots)/3)
		testkit.Equal(t, "bots among devices", report.Devices[schema.Bot], bots)
		devices := int64(0)
		for _, n := range report.Devices {
			devices += n
		}
		testkit.Equal(t, "sum of devices", devices, people+bots)
		testkit.Equal(t, "sum of browsers", sumNames(report.Browsers), people)
		testkit.Equal(t, "sum of referrers", sumNames(report.Referrers), people)
		testkit.Equal(t, "sum of countries", sumNames(report.Countries), people)
	})
}

func reportsAccountWhileInserting(t *testing.T, store ClickStores) {
	const each = 24
	whileInserting(t, store, each, func() {
		before := countOf(t, store, spreadLink)
		report, err := store.AccountReport(t.Context(), 1, time.Time{}, time.Time{})
		testkit.Must(t, err)
		days, err := store.AccountDays(t.Context(), 1, time.Time{})
		testkit.Must(t, err)
		after := countOf(t, store, spreadLink)
		people, bots := sumDays(report.Days)
		if total := people + bots; total < before || total > after {
			t.Fatalf("the report says %d between counts of %d and %d", total, before, after)
		}
		testkit.Equal(t, "clicks of half a batch", (people+bots)%each, 0)
		laterPeople, laterBots := sumDays(days)
		if total := laterPeople + laterBots; total < people+bots || total > after || total%each != 0 {
			t.Fatalf("the days have %d clicks between %d and %d, batches have %d", total, people+bots, after, each)
		}
		links := int64(0)
		for _, link := range report.Links {
			links += link.Total
		}
		testkit.Equal(t, "sum of links", links, people+bots)
	})
}

func sumDays(days []schema.DayReport) (people, bots int64) {
	for _, day := range days {
		people += day.People
		bots += day.Bots
	}
	return people, bots
}

func sumNames(names []schema.NameCount) (total int64) {
	for _, name := range names {
		total += name.Total
	}
	return total
}

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// flood returns a click per referrer, each of which is a name of its own: flood-from to flood-(to-1).
func flood(link int64, from, to int) []click {
	clicks := clicksOf(link, to-from)
	for i := range clicks {
		clicks[i].referrer = fmt.Sprintf("flood-%d.example.org", from+i)
	}
	return clicks
}

// insertBounded inserts clicks, of which those whose index is not below named are counted as schema.OtherName.
func (m *model) insertBounded(t *testing.T, store ClickStores, partition, named int, clicks ...click) {
	t.Helper()
	b := m.batch(partition, clicks...)
	given := slices.Clone(b.Referrer)
	testkit.Must(t, store.InsertClicks(t.Context(), b))
	testkit.Equal(t, "referrers of the caller's batch", b.Referrer, given)
	for i := named; i < len(b.Referrer); i++ {
		b.Referrer[i] = schema.OtherName
	}
	m.count(b)
}

func boundsReferrers(t *testing.T, store ClickStores) {
	const most = schema.MaxNames
	model := newModel()
	model.insertBounded(t, store, 0, most-10, flood(1, 0, most-10)...)
	model.insertBounded(t, store, 1, 10, flood(1, most-10, 3*most)...) // the bound is that of all partitions
	model.check(t, store)

	known := flood(1, 0, most)
	model.insert(t, store, 0, append(known, known...)...) // names that were counted before keep their names
	model.check(t, store)

	model.insert(t, store, 0, flood(2, 0, most)...) // another link
	tomorrow := flood(1, 3*most, 4*most)
	for i := range tomorrow {
		tomorrow[i].at = epoch.AddDate(0, 0, 1)
	}
	model.insert(t, store, 0, tomorrow...)
	bots := flood(3, 0, 2*most)
	for i := range bots {
		bots[i].device = schema.Bot
	}
	model.insertBounded(t, store, 0, most, bots...)
	model.check(t, store)

	report, err := store.LinkReport(t.Context(), 1, time.Time{})
	testkit.Must(t, err)
	testkit.Equal(t, "most frequent referrer", report.Referrers[0], schema.NameCount{Name: schema.OtherName, Total: 2 * most})
	day := epoch.UTC().Truncate(24 * time.Hour) // a filter needs clicks that are counted with all dimensions together
	filtered, err := store.Report(t.Context(), schema.ReportQuery{AccountID: 1, Links: []int64{1}, Limit: 1, Previous: day.AddDate(0, 0, -1),
		Bounds: []time.Time{day, day.AddDate(0, 0, 1)}, Filter: map[schema.Dimension]string{schema.ByOS: "Linux"}})
	testkit.Must(t, err)
	testkit.Equal(t, "most frequent referrer of a filtered report", filtered.Names[schema.ByReferrer],
		[]schema.NameCount{{Name: schema.OtherName, Total: 2 * most}})
}

// boundsReferrersAgain checks that a store that is opened again knows the names that it has counted.
func boundsReferrersAgain(t *testing.T, open Open[ClickStores]) {
	store, reopen := open(t)
	model := newModel()
	model.insertBounded(t, store, 0, schema.MaxNames, flood(1, 0, schema.MaxNames+5)...)
	for range 3 {
		store = reopen()
		model.insertBounded(t, store, 0, schema.MaxNames, flood(1, 0, 2*schema.MaxNames)...)
	}
	model.check(t, store)
}

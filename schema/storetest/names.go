package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var nameBehaviours = []behaviour[ClickStores]{
	{"InsertClicks bounds the names of a link's referrers per day, and counts the rest as Other", boundsReferrers},
	{"InsertClicks bounds the names of a link's paths per day, and counts the rest as Other", boundsPaths},
	{"InsertClicks bounds the combinations of names of a link and day, and counts the rest as Other", boundsCombinations},
}

// flood returns clicks with names of their own in each dimension of writtenNames: flood-from to flood-(to-1).
func flood(link int64, from, to int) []click {
	clicks := clicksOf(link, to-from)
	for i := range clicks {
		for _, by := range writtenNames {
			clicks[i].names[by] = fmt.Sprintf("flood-%d.example.org", from+i)
		}
	}
	return clicks
}

// insertBounded inserts clicks, of which those whose index is not below named are counted as schema.OtherName in some
// dimensions.
func (m *model) insertBounded(
	t *testing.T, store ClickStores, partition, named int, other []schema.Dimension, clicks ...click,
) {
	t.Helper()
	b := m.batch(partition, clicks...)
	testkit.Must(t, store.InsertClicks(t.Context(), b))
	testkit.Equal(t, "batch of the caller", b, m.batch(partition, clicks...))
	for _, by := range other {
		names := *b.Names(by)
		for i := named; i < len(names); i++ {
			names[i] = schema.OtherName
		}
	}
	m.count(b)
}

// writtenNames are the dimensions with at most schema.MaxNames names per link and day.
var writtenNames = slices.DeleteFunc(schema.Dimensions(schema.MadeUpNames),
	func(by schema.Dimension) bool { return schema.MaxNamesOf(by) != schema.MaxNames })

func boundsReferrers(t *testing.T, store ClickStores) {
	const most = schema.MaxNames
	model := newModel()
	model.insertBounded(t, store, 0, most-10, writtenNames, flood(1, 0, most-10)...)
	model.insertBounded(t, store, 1, 10, writtenNames, flood(1, most-10, 3*most)...) // the bound is that of all partitions

	known := flood(1, 0, most)
	model.insert(t, store, 0, append(known, known...)...) // names that were counted before keep their names

	model.insert(t, store, 0, flood(2, 0, most)...) // another link
	tomorrow := flood(1, 3*most, 4*most)
	for i := range tomorrow {
		tomorrow[i].at = epoch.AddDate(0, 0, 1)
	}
	model.insert(t, store, 0, tomorrow...)
	bots := flood(3, 0, 2*most)
	for i := range bots {
		bots[i].names[schema.ByDevice] = schema.Bot
	}
	model.insertBounded(t, store, 0, most, writtenNames, bots...)
	model.check(t, store)

	report, err := store.Report(t.Context(), Days(1, []int64{1}, epoch, 2))
	testkit.Must(t, err)
	testkit.Equal(t, "most frequent referrer", report.Names[schema.ByReferrer][0],
		schema.NameCount{Name: schema.OtherName, Total: 2 * most})
	day := epoch.UTC().Truncate(24 * time.Hour) // a filter needs clicks that are counted with all dimensions together
	filtered, err := store.Report(t.Context(), schema.ReportQuery{AccountID: 1, Links: []int64{1}, Limit: 1,
		Previous: day.AddDate(0, 0, -1),
		Bounds:   []time.Time{day, day.AddDate(0, 0, 1)}, Filter: map[schema.Dimension]string{schema.ByOS: "Linux"}})
	testkit.Must(t, err)
	testkit.Equal(t, "most frequent referrer of a filtered report", filtered.Names[schema.ByReferrer],
		[]schema.NameCount{{Name: schema.OtherName, Total: 2 * most}})
}

func boundsPaths(t *testing.T, store ClickStores) {
	onPaths := func(link int64, from, to int) []click {
		clicks := clicksOf(link, to-from)
		for i := range clicks {
			clicks[i].names[schema.ByPath] = fmt.Sprint("docs/", from+i)
		}
		return clicks
	}
	model, paths := newModel(), []schema.Dimension{schema.ByPath}
	for first := range 9 { // few clicks at a time
		model.insert(t, store, 0, onPaths(1, 20*first, 20*first+20)...)
	}
	model.insertBounded(t, store, 1, 20, paths, onPaths(1, 180, 300)...)
	model.insert(t, store, 0, clicksOf(1, 400)...) // without a path
	model.insert(t, store, 0, onPaths(1, 0, schema.MaxPaths)...)
	model.insertBounded(t, store, 0, schema.MaxPaths, paths, onPaths(2, 0, 2*schema.MaxPaths)...)
	tomorrow := onPaths(1, 1000, 1000+schema.MaxPaths)
	for i := range tomorrow {
		tomorrow[i].at = epoch.AddDate(0, 0, 1)
	}
	model.insert(t, store, 0, tomorrow...)
	model.check(t, store)
}

// boundsReferrersAgain checks that a store that is opened again knows the names that it has counted.
func boundsReferrersAgain(t *testing.T, open Open[ClickStores]) {
	store, reopen := open(t)
	model := newModel()
	model.insertBounded(t, store, 0, schema.MaxNames, writtenNames, flood(1, 0, schema.MaxNames+5)...)
	for range 3 {
		store = reopen()
		model.insertBounded(t, store, 0, schema.MaxNames, writtenNames, flood(1, 0, 2*schema.MaxNames)...)
	}
	model.check(t, store)
}

// mixture returns a click per combination of names that visitors choose, which are few in each dimension: the
// combinations from to to-1. The other names are fewer.
func mixture(link int64, from, to int) []click {
	clicks := clicksOf(link, to-from)
	for i := range clicks {
		c, n := &clicks[i], from+i
		for _, by := range schema.Dimensions(schema.PickedNames, schema.MadeUpNames) {
			c.names[by] = fmt.Sprintf("%s-%d", by, n%12)
			n /= 12
		}
		for at, by := range schema.Dimensions(schema.FixedNames, schema.OwnedNames) {
			c.names[by] = []string{"", "red", "blue"}[i%(3-at%2)]
		}
		c.names[schema.ByDevice] = []schema.Device{schema.Mobile, schema.Bot, schema.Desktop}[i%3]
		c.at = epoch.Add(time.Duration(i%1000) * time.Minute) // ends before the UTC day
	}
	return clicks
}

func boundsCombinations(t *testing.T, store ClickStores) {
	const most = schema.MaxCombinations
	other := schema.Dimensions(schema.PickedNames, schema.MadeUpNames)
	model := newModel()
	model.insertBounded(t, store, 0, most-10, nil, mixture(1, 0, most-10)...)
	model.insertBounded(t, store, 1, 10, other, mixture(1, most-10, most+500)...)
	model.insert(t, store, 0, mixture(1, 0, 500)...) // combinations that were counted before
	model.insert(t, store, 0, mixture(2, 0, 500)...) // another link
	tomorrow := mixture(1, most+500, most+1000)
	for i := range tomorrow {
		tomorrow[i].at = tomorrow[i].at.AddDate(0, 0, 1)
	}
	model.insert(t, store, 0, tomorrow...)
	model.check(t, store)
	for _, filter := range []map[schema.Dimension]string{
		{schema.ByCountry: "red"}, {schema.ByBrowser: schema.OtherName},
		{schema.ByOS: "os-3", schema.ByDevice: schema.Mobile},
	} {
		for _, links := range [][]int64{{1}, nil} {
			q := Days(1, links, epoch, 2)
			q.Filter = filter
			model.checkQuery(t, store, q)
		}
	}
}

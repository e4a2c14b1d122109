package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var historyBehaviours = []behaviour[ClickStores]{
	{"SetHistories replaces all that a source has said, and a repetition changes nothing", replacesHistories},
	{"imported clicks are in every count but those of people, bots, visitors and names", countsImported},
	{"reports count imported clicks on the date of their zone", datesImported},
	{"filters leave imported clicks whose names they ask for", filtersImported},
	{"a link with few clicks and many imported ones is among the top links of its account", ranksImported},
	{"SetHistories allows a link a bounded number of sources", boundsSources},
	{"SetHistories succeeds for a bounded number of concurrent sources", boundsConcurrentSources},
	{"SetHistories replaces histories as a whole or not at all when its context ends", replacesWholeHistories},
	{"SetHistories refuses what no store can keep", refusesHistories},
	{"SetHistories accepts the longest history, and many links at once", keepsLongHistories},
}

// HistoryOf returns what a source says: clicks on each day from the first one. Some days have none.
func HistoryOf(account, link int64, source string, first time.Time, clicks ...int64) schema.History {
	h := schema.History{AccountID: account, LinkID: link, Source: source}
	for i, n := range clicks {
		h.Days = append(h.Days, schema.DayCount{Date: first.UTC().AddDate(0, 0, i).Format(time.DateOnly), Total: n})
	}
	return h
}

// set replaces histories in the store and in the model, and reads them again.
func (m *model) set(t *testing.T, store ClickStores, histories ...schema.History) {
	t.Helper()
	testkit.Must(t, store.SetHistories(t.Context(), histories...))
	for _, h := range histories {
		got, err := store.History(t.Context(), h.LinkID, h.Source)
		testkit.Must(t, err)
		testkit.Equal(t, "history", got, h, nilOrEmpty)
		m.forget(h.LinkID, h.Source)
		m.histories = append(m.histories, h)
	}
}

// remove deletes a history in the store and in the model.
func (m *model) remove(t *testing.T, store ClickStores, link int64, source string) {
	t.Helper()
	testkit.Must(t, store.DeleteHistory(t.Context(), link, source))
	_, err := store.History(t.Context(), link, source)
	testkit.WantCode(t, err, schema.CodeNotFound)
	testkit.WantCode(t, store.DeleteHistory(t.Context(), link, source), schema.CodeNotFound)
	m.forget(link, source)
}

func (m *model) forget(link int64, source string) {
	m.histories = slices.DeleteFunc(m.histories, func(h schema.History) bool {
		return h.LinkID == link && h.Source == source
	})
}

// importedDays calls each for the imported clicks of each link and day.
func (m *model) importedDays(each func(h schema.History, at time.Time, clicks int64)) {
	for _, h := range m.histories {
		for _, day := range h.Days {
			at, err := time.Parse(time.DateOnly, day.Date)
			if err != nil {
				panic(err)
			}
			if day.Total > 0 {
				each(h, schema.ImportedAt(schema.DayNumber(at)), day.Total)
			}
		}
	}
}

// addImported adds the imported clicks of a query to its report, and the imported clicks of links to their clicks.
func (m *model) addImported(q schema.ReportQuery, r *schema.Report, links map[int64]int64) {
	if !q.CountsImported() {
		return
	}
	sources := map[string]int64{}
	m.importedDays(func(h schema.History, at time.Time, clicks int64) {
		ofQuery := h.AccountID == q.AccountID && (q.Links == nil || slices.Contains(q.Links, h.LinkID))
		if !ofQuery || at.Before(q.Previous) || !at.Before(q.End()) {
			return
		}
		q.Count(r, at, schema.Period{Imported: clicks})
		if !at.Before(q.Bounds[0]) {
			links[h.LinkID] += clicks
			sources[h.Source] += clicks
		}
	})
	for _, source := range top(sources, len(sources)) {
		r.Sources = append(r.Sources, schema.NameCount{Name: source, Total: sources[source]})
	}
}

// checkSums compares the imported clicks of all links.
func (m *model) checkSums(t *testing.T, store schema.HistoryStore) {
	t.Helper()
	all := int64(0)
	for _, h := range m.histories {
		all += h.Total()
	}
	sums, err := store.ImportedSums(t.Context())
	testkit.Must(t, err)
	for name, sum := range sums {
		testkit.Equal(t, name, sum, uint64(all))
	}
	if len(sums) == 0 {
		t.Error("no sums of imported clicks")
	}
}

func replacesHistories(t *testing.T, store ClickStores) {
	model := newModel()
	model.check(t, store)
	model.set(t, store, HistoryOf(1, 7, "bitly", epoch.AddDate(0, -3, 0), 5, 0, 7, 1)) // of a link without clicks
	model.check(t, store)
	model.insert(t, store, 0, spread(20)...)
	long := HistoryOf(1, spreadLink, "bitly", epoch.AddDate(0, 0, -40), slices.Repeat([]int64{3, 4, 0}, 15)...)
	for range 2 {
		model.set(t, store, long)
		model.check(t, store)
	}
	model.set(t, store, HistoryOf(1, spreadLink, "bitly", epoch.AddDate(0, 0, -30), 9, 0, 8)) // fewer days
	model.set(t, store, HistoryOf(1, spreadLink, "old-site", epoch.AddDate(0, 0, -29), 2))
	model.check(t, store)
	model.set(t, store, HistoryOf(1, 7, "bitly", epoch)) // without days
	model.check(t, store)
	model.remove(t, store, spreadLink, "bitly")
	model.check(t, store)
	model.set(t, store, long) // after it was deleted
	model.remove(t, store, 7, "bitly")
	model.check(t, store)
	testkit.WantCode(t, store.DeleteHistory(t.Context(), unknownLink, "bitly"), schema.CodeNotFound)
}

// randomHistories returns what some sources say about links of randomClicks, during the time of those clicks and
// before.
func randomHistories(random *rand.Rand, links int) (all []schema.History) {
	for n := range links {
		link := int64(randomLink + n)
		for _, source := range []string{"a", "b_2", "long-name-of-a-source-with-32-ch"}[:random.IntN(4)] {
			clicks := make([]int64, random.IntN(60))
			for i := range clicks {
				clicks[i] = random.Int64N(4)
			}
			first := epoch.AddDate(0, 0, 20-random.IntN(80))
			all = append(all, HistoryOf(2+link%5, link, source, first, clicks...))
		}
	}
	return all
}

func countsImported(t *testing.T, store ClickStores) {
	model, random := newModel(), rand.New(rand.NewPCG(51, 52))
	for range 2 {
		model.insert(t, store, 0, randomClicks(random, 300, 6)...)
		model.set(t, store, randomHistories(random, 9)...)
		model.check(t, store)
	}
	clicks := randomClicks(random, 40, 6)
	for _, zone := range zones(t) {
		for range 3 {
			model.checkQuery(t, store, randomQuery(random, zone, clicks[random.IntN(len(clicks))]))
		}
	}
	bounds, _ := daysFrom(epoch.UTC().Truncate(24*time.Hour).AddDate(0, 0, -10), 20)
	links := []int64{randomLink, randomLink + 5, randomLink + 7, unknownLink}
	series, err := store.ClickSeries(t.Context(), 2+randomLink%5, links, bounds)
	testkit.Must(t, err)
	q := schema.ReportQuery{Bounds: bounds}
	want := map[int64][]int64{}
	count := func(link int64, at time.Time, clicks int64) {
		if slices.Contains(links, link) && !at.Before(bounds[0]) && at.Before(q.End()) {
			q.CountSeries(want, link, at, clicks)
		}
	}
	for id, link := range model.links {
		for _, c := range link.clicks {
			count(id, c.at, 1)
		}
	}
	model.importedDays(func(h schema.History, at time.Time, clicks int64) { count(h.LinkID, at, clicks) })
	testkit.Equal(t, "series of links", series, want)
}

func datesImported(t *testing.T, store ClickStores) {
	model := newModel()
	model.set(t, store, HistoryOf(1, 1, "bitly", epoch, 1, 20, 300))
	for name, want := range map[string][]int64{
		"UTC": {1, 20, 300}, "America/Los_Angeles": {1, 20, 300}, "Pacific/Honolulu": {1, 20, 300},
		"Europe/Berlin": {1, 20, 300}, "Asia/Kathmandu": {1, 20, 300}, "Pacific/Auckland": {1, 20, 300},
	} {
		zone, err := time.LoadLocation(name)
		testkit.Must(t, err)
		q := schema.ReportQuery{AccountID: 1, Limit: 1}
		q.Bounds, q.Previous = daysFrom(time.Date(2026, time.November, 21, 0, 0, 0, 0, zone), 3)
		for _, q.Links = range [][]int64{nil, {1}} {
			report, err := store.Report(t.Context(), q)
			testkit.Must(t, err)
			var got []int64
			for _, p := range report.Series {
				got = append(got, p.Imported)
			}
			testkit.Equal(t, "days in "+name, got, want)
		}
	}
}

func filtersImported(t *testing.T, store ClickStores) {
	model := newModel()
	model.insert(t, store, 0, spread(30)...)
	model.set(t, store, HistoryOf(1, spreadLink, "bitly", epoch, 5, 6), HistoryOf(1, 8, "bitly", epoch, 1))
	for _, filter := range []map[schema.Dimension]string{
		{schema.ByDevice: schema.Other}, {schema.ByDevice: schema.Desktop}, {schema.ByBrowser: schema.Imported},
		{schema.ByDevice: schema.Other, schema.ByCountry: ""}, {schema.ByDevice: schema.Other, schema.ByCountry: "DE"},
		{schema.ByRoute: ""},
	} {
		for _, links := range [][]int64{nil, {spreadLink}, {spreadLink, 8}} {
			for _, zone := range []*time.Location{time.UTC, time.FixedZone("", -5*3600)} {
				q := schema.ReportQuery{AccountID: 1, Links: links, Limit: 3, TopLinks: true, Filter: filter}
				q.Bounds, q.Previous = daysFrom(time.Date(2026, time.November, 22, 0, 0, 0, 0, zone), 4)
				model.checkQuery(t, store, q)
			}
		}
	}
}

func ranksImported(t *testing.T, store ClickStores) {
	model := newModel()
	var clicks []click
	for link := range int64(30) {
		clicks = append(clicks, clicksOf(100+link, int(40-link))...)
	}
	model.insert(t, store, 0, clicks...)
	model.set(t, store, HistoryOf(1, 129, "bitly", epoch, 28), HistoryOf(1, 128, "bitly", epoch, 2),
		HistoryOf(1, 99, "bitly", epoch, 39), HistoryOf(1, 98, "bitly", epoch.AddDate(0, 0, -1), 1000),
		HistoryOf(2, 97, "bitly", epoch, 1000)) // before, and of another account
	for _, days := range []int{1, 200} { // the names of long reports are ranked elsewhere
		for _, links := range [][]int64{nil, {129, 128, 99, 98, 100, 101, 102, 103}} {
			for _, zone := range []*time.Location{time.UTC, time.FixedZone("", 3*3600)} {
				for _, limit := range []int{1, 3, 10, 100} {
					q := schema.ReportQuery{AccountID: 1, Links: links, Limit: limit, TopLinks: true}
					q.Bounds, q.Previous = daysFrom(time.Date(2026, time.November, 21, 0, 0, 0, 0, zone), days)
					model.checkQuery(t, store, q)
				}
			}
		}
	}
}

func boundsSources(t *testing.T, store ClickStores) {
	model := newModel()
	for i := range schema.MaxHistorySources {
		model.set(t, store, HistoryOf(1, 1, fmt.Sprint("source-", i), epoch, int64(i)))
	}
	more := HistoryOf(1, 1, "more", epoch, 1)
	testkit.WantCode(t, store.SetHistories(t.Context(), HistoryOf(1, 2, "bitly", epoch, 1), more), schema.CodeInvalid)
	model.check(t, store)
	model.set(t, store, HistoryOf(1, 1, "source-0", epoch, 100)) // one of them
	model.remove(t, store, 1, "source-1")
	model.set(t, store, more)
	model.check(t, store)
}

func boundsConcurrentSources(t *testing.T, store ClickStores) {
	errs := concurrently(12, func(i int) error {
		return store.SetHistories(t.Context(), HistoryOf(1, 1, fmt.Sprint("source-", i), epoch, 1))
	})
	succeeded := int64(0)
	for _, err := range errs {
		if err == nil {
			succeeded++
		} else {
			testkit.WantCode(t, err, schema.CodeInvalid)
		}
	}
	testkit.Equal(t, "sources that were accepted", succeeded, schema.MaxHistorySources)
	testkit.Equal(t, "clicks", countOf(t, store, 1), succeeded)
}

// replacesWholeHistories ends the context of calls at any moment. What is read afterwards stays: no call that has
// returned replaces it later.
func replacesWholeHistories(t *testing.T, store ClickStores) {
	model := newModel()
	histories := func(round int64) []schema.History {
		clicks := slices.Repeat([]int64{round}, 4000)
		first := epoch.AddDate(0, 0, -len(clicks))
		return []schema.History{HistoryOf(1, 1, "bitly", first, clicks...), HistoryOf(1, 2, "bitly", first, clicks...)}
	}
	model.set(t, store, histories(0)...)
	for round := range int64(12) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round)*3*time.Millisecond)
		err := store.SetHistories(ctx, histories(round)...)
		cancel()
		got, readErr := store.History(t.Context(), 1, "bitly")
		testkit.Must(t, readErr)
		if got.Days[0].Total == round {
			model.histories = histories(round)
		} else if err == nil {
			t.Fatalf("call %d has replaced nothing", round)
		}
		model.checkCounts(t, store)
	}
	model.set(t, store, histories(100)...)
	model.checkCounts(t, store)
}

func refusesHistories(t *testing.T, store ClickStores) {
	good := HistoryOf(1, 1, "bitly", epoch, 1, 2)
	for name, spoil := range map[string]func(*schema.History){
		"no source":          func(h *schema.History) { h.Source = "" },
		"a long source":      func(h *schema.History) { h.Source = "a-name-of-a-source-with-33-charac" },
		"capitals":           func(h *schema.History) { h.Source = "Bitly" },
		"a date twice":       func(h *schema.History) { h.Days[1].Date = h.Days[0].Date },
		"dates that descend": func(h *schema.History) { slices.Reverse(h.Days) },
		"no date":            func(h *schema.History) { h.Days[0].Date = "2026-02-30" },
		"the time before 1970": func(h *schema.History) {
			h.Days[0].Date = "1969-12-31"
		},
		"fewer than none": func(h *schema.History) { h.Days[0].Total = -1 },
		"too many clicks": func(h *schema.History) { h.Days[0].Total = schema.MaxImportedClicks + 1 },
		"too many days": func(h *schema.History) {
			*h = HistoryOf(1, 1, "bitly", epoch.AddDate(-30, 0, 0), make([]int64, schema.MaxHistoryDays+1)...)
		},
		"too many days together": func(h *schema.History) {
			*h = HistoryOf(1, 1, "bitly", epoch.AddDate(-10, 0, 0), make([]int64, 3000)...)
		},
	} {
		h := good
		h.Days = slices.Clone(good.Days)
		spoil(&h)
		others := make([]schema.History, 0, schema.MaxHistoriesDays/3000)
		for link := range int64(cap(others)) {
			others = append(others, HistoryOf(1, 2+link, "bitly", epoch.AddDate(-10, 0, 0), make([]int64, 3000)...))
		}
		if err := store.SetHistories(t.Context(), append(others, good, h)...); schema.ErrorCode(err) != schema.CodeInternal {
			t.Errorf("%s: error %v", name, err)
		}
	}
	testkit.Equal(t, "clicks", countOf(t, store, 1), 0)
}

func keepsLongHistories(t *testing.T, store ClickStores) {
	model := newModel()
	most := make([]int64, schema.MaxHistoryDays)
	for i := range most {
		most[i] = schema.MaxImportedClicks - int64(i)
	}
	model.set(t, store, HistoryOf(1, 1, "bitly", epoch.AddDate(0, 0, 1-len(most)), most...))
	var many []schema.History
	for link := range int64(1000) {
		many = append(many, HistoryOf(1, 1000+link, "bitly", epoch.AddDate(0, 0, -30), 1, link))
	}
	testkit.Must(t, store.SetHistories(t.Context(), many...))
	model.histories = append(model.histories, many...)
	model.checkQuery(t, store, Days(1, nil, epoch.AddDate(0, 0, -40), 41))
	model.checkCounts(t, store)
	testkit.Must(t, store.SetHistories(t.Context()))
}

// keepsHistories checks that imported clicks survive reopening.
func keepsHistories(t *testing.T, open Open[ClickStores]) {
	store, reopen := open(t)
	model := newModel()
	model.insert(t, store, 0, spread(7)...)
	model.set(t, store, HistoryOf(1, spreadLink, "bitly", epoch, 1, 2), HistoryOf(1, 9, "dub", epoch, 3))
	store = reopen()
	model.remove(t, store, 9, "dub")
	store = reopen()
	model.check(t, store)
}

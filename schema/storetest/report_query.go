package storetest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var reportQueryBehaviours = []behaviour[ClickStores]{
	{"Report is zero without clicks", queriesNothing},
	{"Report counts what any query selects", answersQueries},
	{"Report includes clicks at the beginning of a period, and excludes those at its end", queriesBounds},
	{"Report is of one moment while clicks are inserted", queriesWhileInserting},
	{"Report refuses queries that Check refuses", refusesQueries},
	{"ReportDetail is zero for a new store", knowsAll},
}

// TestReportQueries is the part of TestClickStore on reports with filters, and of days in any zone.
func TestReportQueries[S ClickStores](t *testing.T, open Open[S]) {
	run(t, asClickStores(open), reportQueryBehaviours)
}

// checkQuery compares the answer to a query with the model.
func (m *model) checkQuery(t *testing.T, store ClickStores, q schema.ReportQuery) {
	t.Helper()
	got, err := store.Report(t.Context(), q)
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprintf("report of %+v", q), got, m.report(q), nilOrEmpty)
}

// report computes the answer of a store by plain means.
func (m *model) report(q schema.ReportQuery) schema.Report {
	report := schema.Report{Series: make([]schema.Period, len(q.Bounds)-1),
		Names: map[schema.Dimension][]schema.NameCount{}}
	names, links := map[schema.Dimension]map[string]int64{}, map[int64]int64{}
	for _, by := range schema.Dimensions() {
		names[by] = map[string]int64{}
	}
	for _, c := range m.selected(q) {
		p := &report.Previous
		for i, begin := range q.Bounds[:len(q.Bounds)-1] {
			if !c.at.Before(begin) {
				p = &report.Series[i]
			}
		}
		if c.names[schema.ByDevice] == schema.Bot {
			p.Bots++
		} else {
			p.People++
		}
		if c.at.Before(q.Bounds[0]) {
			continue
		}
		links[c.link]++
		if c.names[schema.ByDevice] == schema.Bot || q.NoNames {
			continue
		}
		for by, name := range c.names {
			names[by][name]++
		}
	}
	m.addImported(q, &report, links)
	if q.CountsVisitors() {
		report.Visitors = countVisitors(q, func(yield func(time.Time, uint64) bool) {
			for _, c := range m.selected(q) {
				yield(c.at, c.visitor)
			}
		})
	}
	for by, counts := range names {
		for _, name := range top(counts, q.Limit) {
			report.Names[by] = append(report.Names[by], schema.NameCount{Name: name, Total: counts[name]})
		}
	}
	if q.TopLinks {
		for _, link := range top(links, q.Limit) {
			report.Links = append(report.Links, schema.LinkCount{LinkID: link, Total: links[link]})
		}
	}
	return report
}

// countVisitors counts the visitors of a query in the times and visitors of its clicks: each once per period and UTC
// day, and once per UTC day in the sums.
func countVisitors(q schema.ReportQuery, clicks iter.Seq2[time.Time, uint64]) *schema.Visitors {
	type seen struct {
		period int
		inside bool // not in the time before
		day    int64
		hash   uint64
	}
	v, known := &schema.Visitors{Series: make([]int64, len(q.Bounds)-1)}, map[seen]bool{}
	for at, visitor := range clicks {
		if visitor == 0 {
			continue
		}
		period := q.Period(at)
		of := seen{period, period >= 0, at.Unix() / 86400, visitor}
		sum := of
		sum.period = -2
		if period >= 0 && !known[of] {
			v.Series[period]++
		}
		switch {
		case known[sum]:
		case of.inside:
			v.Total++
		default:
			v.Previous++
		}
		known[of], known[sum] = true, true
	}
	return v
}

// selected returns the clicks of a query, including the clicks of the time before.
func (m *model) selected(q schema.ReportQuery) (all []click) {
	for _, link := range m.links {
		for _, c := range link.clicks {
			ofQuery := c.account == q.AccountID && (q.Links == nil || slices.Contains(q.Links, c.link))
			for by, name := range q.Filter {
				ofQuery = ofQuery && c.names[by] == name
			}
			if ofQuery && !c.at.Before(q.Previous) && c.at.Before(q.Bounds[len(q.Bounds)-1]) {
				all = append(all, c)
			}
		}
	}
	return all
}

// daysFrom returns bounds of n days of a zone, and the bound of n days before.
func daysFrom(first time.Time, n int) (bounds []time.Time, previous time.Time) {
	at := func(i int) time.Time { return first.AddDate(0, 0, i).UTC() }
	for i := range n + 1 {
		bounds = append(bounds, at(i))
	}
	return bounds, at(-n)
}

// Zones with offsets that are far from UTC, near it, not of whole hours, and that change within the clicks of the
// suites.
func zones(t *testing.T) (all []*time.Location) {
	t.Helper()
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu", "Pacific/Kiritimati",
		"Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		testkit.Must(t, err)
		all = append(all, zone)
	}
	return all
}

// randomQuery returns a query of clicks that randomClicks makes.
func randomQuery(random *rand.Rand, zone *time.Location, sample click) schema.ReportQuery {
	q := schema.ReportQuery{AccountID: sample.account, Limit: 1 + random.IntN(6), TopLinks: random.IntN(2) == 0}
	q.NoNames, q.Visitors = random.IntN(4) == 0, random.IntN(4) > 0
	days := 1 + random.IntN(9)
	begin := time.Date(2026, time.November, 15+random.IntN(25), 0, 0, 0, 0, zone)
	q.Bounds, q.Previous = daysFrom(begin, days)
	if random.IntN(3) == 0 { // hours
		end := q.Bounds[len(q.Bounds)-1]
		q.Bounds = nil
		for at := begin.UTC(); !at.After(end); at = at.Add(time.Hour) {
			q.Bounds = append(q.Bounds, at)
		}
	}
	switch random.IntN(3) {
	case 0:
		q.Links = []int64{sample.link}
	case 1:
		q.Links = []int64{sample.link + 5, sample.link, unknownLink} // links of the account
	}
	for _, by := range schema.Dimensions() {
		if random.IntN(6) == 0 {
			if q.Filter == nil {
				q.Filter = map[schema.Dimension]string{}
			}
			q.Filter[by] = sample.names[by]
		}
	}
	return q
}

func answersQueries(t *testing.T, store ClickStores) {
	model, random := newModel(), rand.New(rand.NewPCG(21, 22))
	var clicks []click
	for partition := range 2 {
		some := randomClicks(random, 400, 6)
		model.insert(t, store, partition, some...)
		clicks = append(clicks, some...)
	}
	for range 8 {
		for _, zone := range zones(t) {
			model.checkQuery(t, store, randomQuery(random, zone, clicks[random.IntN(len(clicks))]))
		}
	}
}

func queriesNothing(t *testing.T, store ClickStores) {
	model := newModel()
	for range 2 { // in an empty store, and then in one with clicks on another link
		for _, links := range [][]int64{nil, {}, {unknownLink}} {
			for _, filter := range []map[schema.Dimension]string{nil, {schema.ByBrowser: "Firefox"}} {
				q := schema.ReportQuery{AccountID: 99, Links: links, Limit: 3, TopLinks: true, Filter: filter}
				q.Bounds, q.Previous = daysFrom(time.Date(2026, time.November, 20, 0, 0, 0, 0, time.UTC), 3)
				model.checkQuery(t, store, q)
			}
		}
		model.insert(t, store, 0, clicksOf(1, 3)...)
	}
	many := schema.ReportQuery{AccountID: 99, Limit: 3, TopLinks: true,
		Filter: map[schema.Dimension]string{schema.ByOS: "Linux"}}
	many.Bounds, many.Previous = daysFrom(time.Date(2026, time.November, 20, 0, 0, 0, 0, time.FixedZone("", 3600)), 3)
	for i := range int64(schema.MaxReportLinks) {
		many.Links = append(many.Links, 1<<40-i)
	}
	model.checkQuery(t, store, many)
}

func queriesBounds(t *testing.T, store ClickStores) {
	begin := time.Date(2026, time.December, 1, 22, 45, 0, 0, time.UTC)
	model, clicks := newModel(), clicksOf(1, 6)
	for i, at := range []time.Duration{-time.Hour - time.Millisecond, -time.Hour, -time.Millisecond, 0,
		time.Hour - time.Millisecond, time.Hour} {
		clicks[i].at = begin.Add(at)
	}
	model.insert(t, store, 0, clicks...)
	q := schema.ReportQuery{AccountID: 1, Links: []int64{1}, Limit: 1, Previous: begin.Add(-time.Hour),
		Bounds: []time.Time{begin, begin.Add(time.Hour)}}
	report, err := store.Report(t.Context(), q)
	testkit.Must(t, err)
	testkit.Equal(t, "series", report.Series, []schema.Period{{People: 2}})
	testkit.Equal(t, "time before", report.Previous, schema.Period{People: 2})
	model.checkQuery(t, store, q)
}

func queriesWhileInserting(t *testing.T, store ClickStores) {
	const each = 24 // of which eight are by bots
	queries := []schema.ReportQuery{
		{Links: []int64{spreadLink}}, {Filter: map[schema.Dimension]string{schema.ByCountry: "DE"}},
		{Links: []int64{spreadLink}, TopLinks: true},
	}
	for i := range queries {
		queries[i].AccountID, queries[i].Limit = 1, 10
		zone := time.FixedZone("", 3600*(1-i/2)) // the last one has days of UTC
		queries[i].Bounds, queries[i].Previous = daysFrom(time.Date(2026, time.November, 20, 0, 0, 0, 0, zone), 10)
	}
	whileInserting(t, store, each, func() {
		for _, q := range queries {
			report, err := store.Report(t.Context(), q)
			testkit.Must(t, err)
			var people, bots int64
			for _, p := range report.Series {
				people, bots = people+p.People, bots+p.Bots
			}
			testkit.Equal(t, "clicks of half a batch", (people+bots)%each, 0)
			testkit.Equal(t, "bots", bots, (people+bots)/3)
			for by, names := range report.Names {
				testkit.Equal(t, fmt.Sprintf("sum of %s", by), sumNames(names), people)
			}
		}
	})
}

func refusesQueries(t *testing.T, store ClickStores) {
	good := schema.ReportQuery{AccountID: 1, Limit: 1}
	good.Bounds, good.Previous = daysFrom(time.Date(2026, time.November, 20, 0, 0, 0, 0, time.UTC), 2)
	testkit.Must(t, good.Check())
	for name, spoil := range map[string]func(*schema.ReportQuery){
		"one bound":                func(q *schema.ReportQuery) { q.Bounds = q.Bounds[:1] },
		"too many links":           func(q *schema.ReportQuery) { q.Links = make([]int64, schema.MaxReportLinks+1) },
		"no limit":                 func(q *schema.ReportQuery) { q.Limit = 0 },
		"bounds that descend":      func(q *schema.ReportQuery) { slices.Reverse(q.Bounds) },
		"an end before":            func(q *schema.ReportQuery) { q.Previous = q.Bounds[1] },
		"a bound between quarters": func(q *schema.ReportQuery) { q.Bounds[1] = q.Bounds[1].Add(time.Minute) },
		"an unknown dimension":     func(q *schema.ReportQuery) { q.Filter = map[schema.Dimension]string{"lane": "1"} },
		"the time before 1970":     func(q *schema.ReportQuery) { q.Previous = time.Time{} },
	} {
		q := good
		q.Bounds = slices.Clone(good.Bounds)
		spoil(&q)
		if _, err := store.Report(t.Context(), q); schema.ErrorCode(err) != schema.CodeInternal {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func knowsAll(t *testing.T, store ClickStores) {
	model := newModel()
	for range 2 {
		detail, err := store.ReportDetail(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, "detail", detail, schema.ReportDetail{})
		model.insert(t, store, 0, clicksOf(1, 3)...)
	}
}

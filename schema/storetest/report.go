package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var reportBehaviours = []behaviour[ClickStores]{
	{"Report is zero without clicks", reportsWithoutClicks},
	{"Report begins and ends with UTC days", reportsDays},
	{"Report separates people and bots", reportsBotsApart},
	{"Report has the names most frequent among people, ties by name", namesTopOfPeople},
	{"Report ranks clicks without referrer or country like others", ranksUnknown},
	{"Report returns any referrer unchanged", keepsReferrers},
	{"Report of an account adds up its links", sumsOverLinks},
	{"Report has the links with the most clicks, ties by ID", namesTopLinks},
	{"Report of an account is of one moment while clicks are inserted", reportsAccountWhileInserting},
	{"Report and LinkStats agree while clicks are inserted", reportsWhileInserting},
}

// topNames is how many names the reports of these tests have.
const topNames = 10

// Days returns a query of the clicks of UTC days, and of the same number of days before. No links stand for all of the
// account.
func Days(account int64, links []int64, first time.Time, days int) schema.ReportQuery {
	q := schema.ReportQuery{AccountID: account, Links: links, Limit: topNames, TopLinks: links == nil, Visitors: true}
	q.Bounds, q.Previous = daysFrom(first.UTC().Truncate(24*time.Hour), days)
	return q
}

// checkReports compares the reports of all links and accounts from a UTC day on with the model, all days if since is
// zero.
func (m *model) checkReports(t *testing.T, store ClickStores, since time.Time) {
	t.Helper()
	for link, sum := range m.links {
		m.checkDaysOf(t, store, Days(sum.clicks[0].account, []int64{link}, since, 1), sum.clicks)
	}
	for account, clicks := range m.accounts {
		m.checkDaysOf(t, store, Days(account, nil, since, 1), clicks)
	}
}

// checkDaysOf compares the report from the query's first day (zero: the first click's) to the last click's.
func (m *model) checkDaysOf(t *testing.T, store ClickStores, q schema.ReportQuery, clicks []click) {
	t.Helper()
	first, last := q.Bounds[0], epoch
	for i, c := range clicks {
		if i == 0 || c.at.After(last) {
			last = c.at
		}
	}
	if first.Unix() < 0 {
		first = last
		for _, c := range clicks {
			first = slices.MinFunc([]time.Time{first, c.at}, time.Time.Compare)
		}
	}
	first = first.Truncate(24 * time.Hour)
	days := int(last.Sub(first)/(24*time.Hour)) + 1
	if last.Before(first) {
		days = 1
	}
	q.Bounds, q.Previous = daysFrom(first, days)
	m.checkQuery(t, store, q)
}

func reportsWithoutClicks(t *testing.T, store ClickStores) {
	model := newModel()
	for range 2 { // in an empty store, and then in one with clicks on another link
		for _, links := range [][]int64{nil, {unknownLink}} {
			model.checkQuery(t, store, Days(unknownLink, links, epoch, 3))
		}
		model.insert(t, store, 0, clicksOf(1, 3)...)
	}
	model.checkReports(t, store, epoch.AddDate(0, 0, 1)) // no clicks since then
}

func reportsDays(t *testing.T, store ClickStores) {
	midnight := time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)
	model := newModel()
	clicks := clicksOf(1, 7)
	for i, at := range []time.Duration{
		-48 * time.Hour, -time.Millisecond, 0, time.Millisecond, 24*time.Hour - time.Millisecond, 24 * time.Hour,
		100 * 24 * time.Hour,
	} {
		clicks[i].at, clicks[i].names[schema.ByReferrer], clicks[i].names[schema.ByBrowser] = midnight.Add(at),
			fmt.Sprintf("host-%d", i%2), fmt.Sprint(i%3)
	}
	model.insert(t, store, 0, clicks...)
	for _, since := range []time.Time{{}, midnight.AddDate(0, 0, -1), midnight, midnight.AddDate(0, 0, 1),
		midnight.AddDate(1, 0, 0)} {
		model.checkReports(t, store, since)
	}
	report, err := store.Report(t.Context(), Days(1, []int64{1}, midnight, 2))
	testkit.Must(t, err)
	testkit.Equal(t, "days", report.Series, []schema.Period{{People: 3}, {People: 1}})
	testkit.Equal(t, "days before", report.Previous, schema.Period{People: 2})
}

func reportsBotsApart(t *testing.T, store ClickStores) {
	model := newModel()
	clicks := spread(60)
	for i := range clicks {
		if clicks[i].names[schema.ByDevice] == schema.Bot {
			clicks[i].names[schema.ByBrowser], clicks[i].names[schema.ByReferrer],
				clicks[i].names[schema.ByCountry] = "Googlebot", "bots.example.org", "ZZ"
		}
	}
	onlyBots := clicksOf(6, 4)
	for i := range onlyBots {
		onlyBots[i].names[schema.ByDevice], onlyBots[i].at = schema.Bot, epoch.AddDate(0, 0, 10)
	}
	model.insert(t, store, 0, append(clicks, onlyBots...)...)
	model.check(t, store)
	model.checkReports(t, store, epoch.AddDate(0, 0, 3))
	report, err := store.Report(t.Context(), Days(1, []int64{6}, epoch.AddDate(0, 0, 10), 1))
	testkit.Must(t, err)
	testkit.Equal(t, "report of bots", report, schema.Report{Series: []schema.Period{{Bots: 4}},
		Visitors: &schema.Visitors{Series: []int64{0}}}, nilOrEmpty)
}

// rank returns clicks with twelve names that have n clicks each, a later name with 2n clicks and an earlier one with 1.
func rank(n int, set func(c *click, name string)) (clicks []click) {
	frequency := map[string]int{"zz": 2 * n, "AA": 1}
	for i := range 12 {
		frequency[fmt.Sprintf("%c-tie", "KkBbAaZzMmCc"[i])] = n
	}
	for name, times := range frequency {
		for range times {
			c := clicksOf(1, 1)[0]
			set(&c, name)
			clicks = append(clicks, c)
		}
	}
	return clicks
}

func namesTopOfPeople(t *testing.T, store ClickStores) {
	model := newModel()
	for partition, set := range []func(*click, string){
		func(c *click, name string) { c.names[schema.ByBrowser] = name },
		func(c *click, name string) { c.names[schema.ByReferrer] = name },
		func(c *click, name string) { c.names[schema.ByCountry] = name },
	} {
		// Counted bots would change the order.
		bots := clicksOf(1, 50)
		for i := range bots {
			bots[i].names[schema.ByDevice] = schema.Bot
			set(&bots[i], "AA")
		}
		model.insert(t, store, partition, append(rank(5+partition, set), bots...)...)
	}
	model.check(t, store)
	report, err := store.Report(t.Context(), Days(1, []int64{1}, epoch, 1))
	testkit.Must(t, err)
	testkit.Equal(t, "referrers", report.Names[schema.ByReferrer], []schema.NameCount{
		{Name: "news.example.org", Total: 170}, {Name: "zz", Total: 12}, {Name: "A-tie", Total: 6}, {Name: "B-tie", Total: 6},
		{Name: "C-tie", Total: 6}, {Name: "K-tie", Total: 6}, {Name: "M-tie", Total: 6}, {Name: "Z-tie", Total: 6},
		{Name: "a-tie", Total: 6}, {Name: "b-tie", Total: 6},
	})
}

func ranksUnknown(t *testing.T, store ClickStores) {
	model := newModel()
	for _, unknown := range []int{1, 2, 30} { // rare, then tied with others, then most frequent
		clicks := clicksOf(1, unknown)
		for i := range clicks {
			clicks[i].names[schema.ByReferrer], clicks[i].names[schema.ByCountry] = "", ""
		}
		for i := range 9 {
			c := clicksOf(1, 1)[0]
			c.names[schema.ByReferrer], c.names[schema.ByCountry], c.at = fmt.Sprintf("host-%d", i), fmt.Sprintf("C%d", i),
				epoch.AddDate(0, 0, i%2)
			clicks = append(clicks, c)
		}
		unknownBot := clicksOf(1, 1)[0]
		unknownBot.names[schema.ByReferrer], unknownBot.names[schema.ByCountry], unknownBot.names[schema.ByDevice] = "", "",
			schema.Bot
		model.insert(t, store, 0, append(clicks, unknownBot)...)
		model.check(t, store)
		model.checkReports(t, store, epoch.AddDate(0, 0, 1))
	}
}

func keepsReferrers(t *testing.T, store ClickStores) {
	model := newModel()
	var clicks []click
	for i, name := range []string{
		"яндекс.рф", "浏览器", "🦊🔥", "O'Neil \"the\" \\ `host`", " spaced\tname\n", "e\u0301 and \u00e9", "%s?$1:x", "a:b",
		strings.Repeat("long", 200),
	} {
		for range i + 1 {
			c := clicksOf(1, 1)[0]
			c.names[schema.ByReferrer], c.names[schema.ByCountry] = name, name
			clicks = append(clicks, c)
		}
	}
	model.insert(t, store, 0, clicks...)
	model.insert(t, store, 0, clicks...)
	model.check(t, store)
}

func sumsOverLinks(t *testing.T, store ClickStores) {
	model := newModel()
	for partition := range 3 {
		var clicks []click
		for link := range int64(8) {
			some := spread(10 + int(link))
			for i := range some {
				some[i].link, some[i].account = link+1, link%3+1
			}
			clicks = append(clicks, some...)
		}
		model.insert(t, store, partition, clicks...)
	}
	model.check(t, store)
	model.checkReports(t, store, epoch.AddDate(0, 0, 2))
}

func namesTopLinks(t *testing.T, store ClickStores) {
	model := newModel()
	var clicks []click
	for link := range int64(15) { // all have the same number of clicks, except one link
		some := clicksOf(1<<40-link, 4)
		if link == 5 {
			some = append(some, clicksOf(1<<40-link, 1)...)
		}
		some[0].names[schema.ByDevice], some[1].at = schema.Bot, epoch.AddDate(0, 0, int(link))
		clicks = append(clicks, some...)
	}
	model.insert(t, store, 0, clicks...)
	model.check(t, store)
	model.checkReports(t, store, epoch.AddDate(0, 0, 1))
	report, err := store.Report(t.Context(), Days(1, nil, epoch, 20))
	testkit.Must(t, err)
	testkit.Equal(t, "links", len(report.Links), topNames)
	testkit.Equal(t, "first", report.Links[0], schema.LinkCount{LinkID: 1<<40 - 5, Total: 5})
	testkit.Equal(t, "second", report.Links[1], schema.LinkCount{LinkID: 1<<40 - 14, Total: 4})
}

package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var reportBehaviours = []behaviour[ClickStores]{
	{"LinkReport and AccountReport are zero without clicks", reportsWithoutClicks},
	{"LinkReport and AccountReport begin with the UTC day of since", reportsSinceDay},
	{"LinkReport and AccountReport separate people and bots", reportsBotsApart},
	{"LinkReport has the ten names most frequent among people, ties by name", namesTopOfPeople},
	{"LinkReport ranks clicks without referrer or country like others", ranksUnknown},
	{"LinkReport returns any referrer unchanged", keepsReferrers},
	{"AccountReport adds up the account's links", sumsOverLinks},
	{"AccountReport has the ten links with the most clicks, ties by ID", namesTopLinks},
	{"AccountReport omits clicks without an account", leavesOutUnowned},
	{"AccountReport is of one moment while clicks are inserted", reportsAccountWhileInserting},
	{"LinkReport and LinkStats agree while clicks are inserted", reportsWhileInserting},
}

// checkReports compares the reports of all links and accounts with the model.
func (m *model) checkReports(t *testing.T, store ClickStores, since time.Time) {
	t.Helper()
	for link := range m.links {
		m.checkLinkReport(t, store, link, since)
	}
	for account := range m.accounts {
		m.checkAccountReport(t, store, account, since)
	}
}

func (m *model) checkLinkReport(t *testing.T, store ClickStores, link int64, since time.Time) {
	t.Helper()
	got, err := store.LinkReport(t.Context(), link, since)
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprintf("report of link %d since %v", link, since), got, m.linkReport(link, since),
		nilOrEmpty)
}

func (m *model) checkAccountReport(t *testing.T, store ClickStores, account int64, since time.Time) {
	t.Helper()
	want := m.accountReport(account, since)
	for _, first := range slices.Compact([]time.Time{since, {}}) {
		got, err := store.AccountReport(t.Context(), account, first, since)
		testkit.Must(t, err)
		want.Days = daysOf(later(m.accounts[account], first))
		testkit.Equal(t, fmt.Sprintf("report of account %d since %v, of links since %v", account, first, since), got, want, nilOrEmpty)
		days, err := store.AccountDays(t.Context(), account, first)
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprintf("days of account %d since %v", account, first), days, want.Days, nilOrEmpty)
	}
}

func (m *model) linkReport(link int64, since time.Time) (report schema.LinkReport) {
	if m.links[link] == nil {
		return report
	}
	clicks := later(m.links[link].clicks, since)
	report.Days, report.Devices = daysOf(clicks), map[schema.Device]int64{}
	browsers, systems, languages := map[string]int64{}, map[string]int64{}, map[string]int64{}
	referrers, countries := map[string]int64{}, map[string]int64{}
	for _, c := range clicks {
		report.Devices[c.device]++
		if c.device != schema.Bot {
			browsers[c.browser]++
			systems[c.os]++
			languages[c.language]++
			referrers[c.referrer]++
			countries[c.country]++
		}
	}
	report.Browsers, report.Systems, report.Languages = named(browsers), named(systems), named(languages)
	report.Referrers, report.Countries = named(referrers), named(countries)
	return report
}

func (m *model) accountReport(account int64, since time.Time) schema.AccountReport {
	clicks := later(m.accounts[account], since)
	report, totals := schema.AccountReport{Days: daysOf(clicks)}, map[int64]int64{}
	for _, c := range clicks {
		totals[c.link]++
	}
	for _, link := range top(totals, schema.TopNames) {
		report.Links = append(report.Links, schema.LinkCount{LinkID: link, Total: totals[link]})
	}
	return report
}

// later returns the clicks of the UTC day of since and of later ones.
func later(clicks []click, since time.Time) (all []click) {
	for _, c := range clicks {
		if c.at.UTC().Format(time.DateOnly) >= since.UTC().Format(time.DateOnly) {
			all = append(all, c)
		}
	}
	return all
}

func daysOf(clicks []click) (all []schema.DayReport) {
	days := map[string]schema.DayReport{}
	for _, c := range clicks {
		day := days[c.at.UTC().Format(time.DateOnly)]
		if day.Date = c.at.UTC().Format(time.DateOnly); c.device == schema.Bot {
			day.Bots++
		} else {
			day.People++
		}
		days[day.Date] = day
	}
	for _, date := range slices.Sorted(maps.Keys(days)) {
		all = append(all, days[date])
	}
	return all
}

func named(counts map[string]int64) (all []schema.NameCount) {
	for _, name := range top(counts, schema.TopNames) {
		all = append(all, schema.NameCount{Name: name, Total: counts[name]})
	}
	return all
}

func reportsWithoutClicks(t *testing.T, store ClickStores) {
	model := newModel()
	for range 2 { // in an empty store, and then in one with clicks on another link
		for _, since := range []time.Time{{}, epoch} {
			model.checkLinkReport(t, store, unknownLink, since)
			model.checkAccountReport(t, store, unknownLink, since)
			model.checkAccountReport(t, store, 0, since)
		}
		model.insert(t, store, 0, clicksOf(1, 3)...)
	}
	model.checkReports(t, store, epoch.AddDate(0, 0, 1)) // no clicks since then
}

func reportsSinceDay(t *testing.T, store ClickStores) {
	midnight := time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)
	model := newModel()
	clicks := clicksOf(1, 7)
	for i, at := range []time.Duration{
		-48 * time.Hour, -time.Millisecond, 0, time.Millisecond, 24*time.Hour - time.Millisecond, 24 * time.Hour,
		100 * 24 * time.Hour,
	} {
		clicks[i].at, clicks[i].referrer, clicks[i].browser = midnight.Add(at), fmt.Sprintf("host-%d", i%2), fmt.Sprint(i%3)
	}
	model.insert(t, store, 0, clicks...)
	east, west := time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)
	for _, since := range []time.Time{
		{}, midnight.AddDate(-50, 0, 0), midnight.Add(-time.Millisecond), midnight, midnight.Add(time.Hour).In(west),
		midnight.Add(24*time.Hour - time.Millisecond).In(east), midnight.Add(24 * time.Hour), midnight.AddDate(1, 0, 0),
	} {
		model.checkReports(t, store, since)
	}
	report, err := store.LinkReport(t.Context(), 1, midnight.Add(23*time.Hour))
	testkit.Must(t, err)
	testkit.Equal(t, "days", report.Days, []schema.DayReport{
		{Date: "2026-12-01", People: 3}, {Date: "2026-12-02", People: 1}, {Date: "2027-03-11", People: 1},
	})
}

func reportsBotsApart(t *testing.T, store ClickStores) {
	model := newModel()
	clicks := spread(60)
	for i := range clicks {
		if clicks[i].device == schema.Bot {
			clicks[i].browser, clicks[i].referrer, clicks[i].country = "Googlebot", "bots.example.org", "ZZ"
		}
	}
	onlyBots := clicksOf(6, 4)
	for i := range onlyBots {
		onlyBots[i].device, onlyBots[i].at = schema.Bot, epoch.AddDate(0, 0, 10)
	}
	model.insert(t, store, 0, append(clicks, onlyBots...)...)
	model.check(t, store)
	model.checkReports(t, store, epoch.AddDate(0, 0, 3))
	report, err := store.LinkReport(t.Context(), 6, time.Time{})
	testkit.Must(t, err)
	testkit.Equal(t, "report of bots", report, schema.LinkReport{
		Days: []schema.DayReport{{Date: "2026-12-01", Bots: 4}}, Devices: map[schema.Device]int64{schema.Bot: 4},
	}, nilOrEmpty)
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
		func(c *click, name string) { c.browser = name },
		func(c *click, name string) { c.referrer = name },
		func(c *click, name string) { c.country = name },
	} {
		// Counted bots would change the order.
		bots := clicksOf(1, 50)
		for i := range bots {
			bots[i].device = schema.Bot
			set(&bots[i], "AA")
		}
		model.insert(t, store, partition, append(rank(5+partition, set), bots...)...)
		model.check(t, store)
	}
	report, err := store.LinkReport(t.Context(), 1, epoch)
	testkit.Must(t, err)
	testkit.Equal(t, "referrers", report.Referrers, []schema.NameCount{
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
			clicks[i].referrer, clicks[i].country = "", ""
		}
		for i := range 9 {
			c := clicksOf(1, 1)[0]
			c.referrer, c.country, c.at = fmt.Sprintf("host-%d", i), fmt.Sprintf("C%d", i), epoch.AddDate(0, 0, i%2)
			clicks = append(clicks, c)
		}
		unknownBot := clicksOf(1, 1)[0]
		unknownBot.referrer, unknownBot.country, unknownBot.device = "", "", schema.Bot
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
			c.referrer, c.country = name, name
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
		model.check(t, store)
		model.checkReports(t, store, epoch.AddDate(0, 0, 2))
	}
}

func namesTopLinks(t *testing.T, store ClickStores) {
	model := newModel()
	var clicks []click
	for link := range int64(15) { // all have the same number of clicks, except one link
		some := clicksOf(1<<40-link, 4)
		if link == 5 {
			some = append(some, clicksOf(1<<40-link, 1)...)
		}
		some[0].device, some[1].at = schema.Bot, epoch.AddDate(0, 0, int(link))
		clicks = append(clicks, some...)
	}
	model.insert(t, store, 0, clicks...)
	model.check(t, store)
	model.checkReports(t, store, epoch.AddDate(0, 0, 1))
	report, err := store.AccountReport(t.Context(), 1, time.Time{}, time.Time{})
	testkit.Must(t, err)
	testkit.Equal(t, "links", len(report.Links), schema.TopNames)
	testkit.Equal(t, "first", report.Links[0], schema.LinkCount{LinkID: 1<<40 - 5, Total: 5})
	testkit.Equal(t, "second", report.Links[1], schema.LinkCount{LinkID: 1<<40 - 14, Total: 4})
}

// leavesOutUnowned counts clicks on one link with and without its account, as they occur while edges are upgraded.
func leavesOutUnowned(t *testing.T, store ClickStores) {
	model := newModel()
	clicks := append(clicksOf(1, 7), clicksOf(2, 3)...)
	for i := range 4 {
		clicks[i].account = 0
	}
	model.insert(t, store, 0, clicks...)
	model.check(t, store)
	model.checkAccountReport(t, store, 0, time.Time{})
	report, err := store.AccountReport(t.Context(), 1, time.Time{}, time.Time{})
	testkit.Must(t, err)
	testkit.Equal(t, "links", report.Links, []schema.LinkCount{{LinkID: 1, Total: 3}, {LinkID: 2, Total: 3}})
}

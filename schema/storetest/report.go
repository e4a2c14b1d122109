package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
)

var reportBehaviours = []behaviour[ClickStores]{
	{"LinkReport and AccountReport are all zero without clicks", reportsWithoutClicks},
	{"LinkReport and AccountReport begin with the UTC day of since", reportsSinceDay},
	{"LinkReport and AccountReport tell people from bots", reportsBotsApart},
	{"LinkReport names people's ten most frequent, ties by name", namesTopOfPeople},
	{"LinkReport ranks what is not known among the rest", ranksUnknown},
	{"LinkReport keeps any referrer as it is", keepsReferrers},
	{"AccountReport sums over the account's links", sumsOverLinks},
	{"AccountReport names the ten links with the most clicks, ties by ID", namesTopLinks},
	{"AccountReport leaves out clicks without an account", leavesOutUnowned},
	{"LinkReport and LinkStats agree while clicks come in", reportsWhileInserting},
	{"AccountReport is of one moment while clicks come in", reportsAccountWhileInserting},
}

// checkReports compares the reports of all links and accounts with the ledger.
func (l *ledger) checkReports(t *testing.T, store ClickStores, since time.Time) {
	t.Helper()
	for link := range l.links {
		l.checkLinkReport(t, store, link, since)
	}
	for account := range l.accounts {
		l.checkAccountReport(t, store, account, since)
	}
}

func (l *ledger) checkLinkReport(t *testing.T, store ClickStores, link int64, since time.Time) {
	t.Helper()
	got, err := store.LinkReport(t.Context(), link, since)
	must(t, err)
	equal(t, fmt.Sprintf("report of link %d since %v", link, since), fmt.Sprintf("%+v", got),
		fmt.Sprintf("%+v", l.linkReport(link, since)))
}

func (l *ledger) checkAccountReport(t *testing.T, store ClickStores, account int64, since time.Time) {
	t.Helper()
	got, err := store.AccountReport(t.Context(), account, since)
	must(t, err)
	equal(t, fmt.Sprintf("report of account %d since %v", account, since), fmt.Sprintf("%+v", got),
		fmt.Sprintf("%+v", l.accountReport(account, since)))
}

func (l *ledger) linkReport(link int64, since time.Time) (report schema.LinkReport) {
	if l.links[link] == nil {
		return report
	}
	clicks := later(l.links[link].clicks, since)
	report.Days, report.Devices = daysOf(clicks), map[schema.Device]int64{}
	browsers, referrers, countries := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, c := range clicks {
		report.Devices[c.device]++
		if c.device != schema.Bot {
			browsers[c.browser]++
			referrers[c.referrer]++
			countries[c.country]++
		}
	}
	report.Browsers, report.Referrers, report.Countries = named(browsers), named(referrers), named(countries)
	return report
}

func (l *ledger) accountReport(account int64, since time.Time) schema.AccountReport {
	clicks := later(l.accounts[account], since)
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
	books := newLedger()
	for range 2 { // in an empty store, then in one where others have clicks
		for _, since := range []time.Time{{}, epoch} {
			books.checkLinkReport(t, store, unknownLink, since)
			books.checkAccountReport(t, store, unknownLink, since)
			books.checkAccountReport(t, store, 0, since)
		}
		books.insert(t, store, 0, clicksOf(1, 3)...)
	}
	books.checkReports(t, store, epoch.AddDate(0, 0, 1)) // nothing since then
}

func reportsSinceDay(t *testing.T, store ClickStores) {
	midnight := time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)
	books := newLedger()
	clicks := clicksOf(1, 7)
	for i, at := range []time.Duration{
		-48 * time.Hour, -time.Millisecond, 0, time.Millisecond, 24*time.Hour - time.Millisecond, 24 * time.Hour,
		100 * 24 * time.Hour,
	} {
		clicks[i].at, clicks[i].referrer, clicks[i].browser = midnight.Add(at), fmt.Sprintf("host-%d", i%2), fmt.Sprint(i%3)
	}
	books.insert(t, store, 0, clicks...)
	east, west := time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)
	for _, since := range []time.Time{
		{}, midnight.AddDate(-50, 0, 0), midnight.Add(-time.Millisecond), midnight, midnight.Add(time.Hour).In(west),
		midnight.Add(24*time.Hour - time.Millisecond).In(east), midnight.Add(24 * time.Hour), midnight.AddDate(1, 0, 0),
	} {
		books.checkReports(t, store, since)
	}
	report, err := store.LinkReport(t.Context(), 1, midnight.Add(23*time.Hour))
	must(t, err)
	equal(t, "days", fmt.Sprint(report.Days), "[{2026-12-01 3 0} {2026-12-02 1 0} {2027-03-11 1 0}]")
}

func reportsBotsApart(t *testing.T, store ClickStores) {
	books := newLedger()
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
	books.insert(t, store, 0, append(clicks, onlyBots...)...)
	books.check(t, store)
	books.checkReports(t, store, epoch.AddDate(0, 0, 3))
	report, err := store.LinkReport(t.Context(), 6, time.Time{})
	must(t, err)
	equal(t, "report of bots", fmt.Sprintf("%+v", report), "{Days:[{Date:2026-12-01 People:0 Bots:4}] Devices:map[bot:4] "+
		"Browsers:[] Referrers:[] Countries:[]}")
}

// rank gives n clicks to each of twelve names that tie, 2n to one that comes after them and 1 to one before.
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
	books := newLedger()
	for partition, set := range []func(*click, string){
		func(c *click, name string) { c.browser = name },
		func(c *click, name string) { c.referrer = name },
		func(c *click, name string) { c.country = name },
	} {
		// Bots would change the order.
		bots := clicksOf(1, 50)
		for i := range bots {
			bots[i].device = schema.Bot
			set(&bots[i], "AA")
		}
		books.insert(t, store, partition, append(rank(5+partition, set), bots...)...)
		books.check(t, store)
	}
	report, err := store.LinkReport(t.Context(), 1, epoch)
	must(t, err)
	equal(t, "referrers", fmt.Sprint(report.Referrers), "[{news.example.org 170} {zz 12} {A-tie 6} {B-tie 6} {C-tie 6} "+
		"{K-tie 6} {M-tie 6} {Z-tie 6} {a-tie 6} {b-tie 6}]")
}

func ranksUnknown(t *testing.T, store ClickStores) {
	books := newLedger()
	for _, unknown := range []int{1, 2, 30} { // among the last, then within a tie, then most
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
		books.insert(t, store, 0, append(clicks, unknownBot)...)
		books.check(t, store)
		books.checkReports(t, store, epoch.AddDate(0, 0, 1))
	}
}

func keepsReferrers(t *testing.T, store ClickStores) {
	books := newLedger()
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
	books.insert(t, store, 0, clicks...)
	books.insert(t, store, 0, clicks...)
	books.check(t, store)
}

func sumsOverLinks(t *testing.T, store ClickStores) {
	books := newLedger()
	for partition := range 3 {
		var clicks []click
		for link := range int64(8) {
			some := spread(10 + int(link))
			for i := range some {
				some[i].link, some[i].account = link+1, link%3+1
			}
			clicks = append(clicks, some...)
		}
		books.insert(t, store, partition, clicks...)
		books.check(t, store)
		books.checkReports(t, store, epoch.AddDate(0, 0, 2))
	}
}

func namesTopLinks(t *testing.T, store ClickStores) {
	books := newLedger()
	var clicks []click
	for link := range int64(15) { // all tie but one, of which one click came early
		some := clicksOf(1<<40-link, 4)
		if link == 5 {
			some = append(some, clicksOf(1<<40-link, 1)...)
		}
		some[0].device, some[1].at = schema.Bot, epoch.AddDate(0, 0, int(link))
		clicks = append(clicks, some...)
	}
	books.insert(t, store, 0, clicks...)
	books.check(t, store)
	books.checkReports(t, store, epoch.AddDate(0, 0, 1))
	report, err := store.AccountReport(t.Context(), 1, time.Time{})
	must(t, err)
	equal(t, "links", len(report.Links), schema.TopNames)
	equal(t, "first", report.Links[0], schema.LinkCount{LinkID: 1<<40 - 5, Total: 5})
	equal(t, "second", report.Links[1], schema.LinkCount{LinkID: 1<<40 - 14, Total: 4})
}

// leavesOutUnowned counts clicks on one link that came with and without its account, as while edges are upgraded.
func leavesOutUnowned(t *testing.T, store ClickStores) {
	books := newLedger()
	clicks := append(clicksOf(1, 7), clicksOf(2, 3)...)
	for i := range 4 {
		clicks[i].account = 0
	}
	books.insert(t, store, 0, clicks...)
	books.check(t, store)
	books.checkAccountReport(t, store, 0, time.Time{})
	report, err := store.AccountReport(t.Context(), 1, time.Time{})
	must(t, err)
	equal(t, "links", fmt.Sprint(report.Links), "[{1 3} {2 3}]")
}

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

var statsBehaviours = []behaviour[ClickStores]{
	{"LinkStats is zero without clicks", statsWithoutClicks},
	{"LinkStats counts days in UTC, ascending", countsUTCDays},
	{"LinkStats counts every device", countsDevices},
	{"LinkStats has the ten most frequent browsers, ties by name", namesTopBrowsers},
	{"LinkStats returns any browser name unchanged", keepsBrowserNames},
	{"LinkStats counts each link separately", tellsLinksApart},
	{"LinkStats and ClickCounts agree while clicks are inserted", agreesWhileInserting},
	{"ClickCounts omits links without clicks", countsOnlyClicked},
	{"ClickCounts accepts six thousand links", countsManyLinks},
	{"ClickSeries counts the clicks of each link in each period", countsSeries},
}

// countOf returns the count of a link.
func countOf(t *testing.T, store ClickStores, link int64) int64 {
	t.Helper()
	counts, err := store.ClickCounts(t.Context(), 1, []int64{link})
	testkit.Must(t, err)
	return counts[link]
}

// sumsAgree requires that days and devices add up to the total, and so do browsers if all of them are listed.
func sumsAgree(t *testing.T, stats schema.Stats) {
	t.Helper()
	var days, devices, browsers int64
	for _, day := range stats.ClicksByDay {
		days += day.Total
	}
	for _, n := range stats.Devices {
		devices += n
	}
	for _, n := range stats.Browsers {
		browsers += n
	}
	testkit.Equal(t, "sum of days", days, stats.TotalClicks)
	testkit.Equal(t, "sum of devices", devices, stats.TotalClicks)
	if len(stats.Browsers) < schema.TopBrowsers {
		testkit.Equal(t, "sum of browsers", browsers, stats.TotalClicks)
	}
}

const spreadLink = 5

// spread returns n clicks on spreadLink with different days, devices and browsers.
func spread(n int) []click {
	clicks := clicksOf(spreadLink, n)
	for i := range clicks {
		clicks[i].at = epoch.AddDate(0, 0, i%6)
		clicks[i].names[schema.ByDevice] = []schema.Device{schema.Desktop, schema.Mobile, schema.Bot}[i%3]
		clicks[i].names[schema.ByBrowser] = fmt.Sprintf("Browser %d", i%4)
	}
	return clicks
}

func statsWithoutClicks(t *testing.T, store ClickStores) {
	model := newModel()
	for partition := range 2 { // in an empty store, and then in one with clicks on another link
		stats, err := store.LinkStats(t.Context(), unknownLink)
		testkit.Must(t, err)
		testkit.Equal(t, "stats", stats, schema.Stats{}, nilOrEmpty)
		model.insert(t, store, partition, clicksOf(1, 3)...)
	}
}

func countsUTCDays(t *testing.T, store ClickStores) {
	midnight := time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)
	clicks := clicksOf(1, 7)
	for i, at := range []time.Time{
		midnight.Add(-time.Millisecond), midnight, midnight.Add(24*time.Hour - time.Millisecond),
		midnight.Add(24 * time.Hour), time.Date(2028, time.February, 29, 12, 0, 0, 0, time.UTC),
		time.Date(1999, time.December, 31, 23, 59, 59, 999_000_000, time.UTC),
		time.Date(2024, time.February, 29, 0, 0, 0, 0, time.UTC),
	} {
		clicks[i].at = at
	}
	model := newModel()
	model.insert(t, store, 0, clicks...)
	model.check(t, store)
	stats, err := store.LinkStats(t.Context(), 1)
	testkit.Must(t, err)
	testkit.Equal(t, "days", stats.ClicksByDay, []schema.DayCount{
		{Date: "1999-12-31", Total: 1}, {Date: "2024-02-29", Total: 1}, {Date: "2026-12-31", Total: 1},
		{Date: "2027-01-01", Total: 2}, {Date: "2027-01-02", Total: 1}, {Date: "2028-02-29", Total: 1},
	})
}

func countsDevices(t *testing.T, store ClickStores) {
	model := newModel()
	for i, device := range []schema.Device{schema.Desktop, schema.Mobile, schema.Tablet, schema.Bot, schema.Other} {
		clicks := clicksOf(1, i+1)
		for j := range clicks {
			clicks[j].names[schema.ByDevice] = device
		}
		model.insert(t, store, 0, clicks...)
		model.check(t, store)
	}
}

func namesTopBrowsers(t *testing.T, store ClickStores) {
	model := newModel()
	frequency := map[string]int{"rare": 1, "Most": 30} // and eleven with 7 each, of which nine are listed
	for i := range 11 {
		frequency[fmt.Sprintf("%c-tie", "KkBbAaZzMmCc"[i])] = 7
	}
	var clicks []click
	for name, n := range frequency {
		for range n {
			c := clicksOf(1, 1)[0]
			c.names[schema.ByBrowser] = name
			clicks = append(clicks, c)
		}
	}
	model.insert(t, store, 0, clicks...)
	model.check(t, store)
	stats, err := store.LinkStats(t.Context(), 1)
	testkit.Must(t, err)
	testkit.Equal(t, "browsers", stats.Browsers, map[string]int64{
		"Most": 30, "A-tie": 7, "B-tie": 7, "C-tie": 7, "K-tie": 7, "M-tie": 7, "Z-tie": 7, "a-tie": 7, "b-tie": 7,
		"k-tie": 7,
	})

	// Clicks of other days, devices and partitions move a browser into the list.
	risen := clicksOf(1, 40)
	for i := range risen {
		risen[i].names[schema.ByBrowser], risen[i].at, risen[i].names[schema.ByDevice] = "rare", epoch.AddDate(0, 0, i),
			schema.Tablet
	}
	model.insert(t, store, 1, risen...)
	model.check(t, store)
}

func keepsBrowserNames(t *testing.T, store ClickStores) {
	model := newModel()
	var clicks []click
	for i, name := range []string{
		"", "Яндекс Браузер", "浏览器", "🦊🔥", "O'Neil \"the\" \\ `browser`", " spaced\tname\n", "e\u0301 and \u00e9",
		"%s?$1:x", strings.Repeat("long", 200),
	} {
		for range i + 1 {
			c := clicksOf(1, 1)[0]
			c.names[schema.ByBrowser] = name
			clicks = append(clicks, c)
		}
	}
	model.insert(t, store, 0, clicks...)
	model.insert(t, store, 0, clicks...)
	model.check(t, store)
}

func tellsLinksApart(t *testing.T, store ClickStores) {
	model := newModel()
	for _, link := range []int64{1, 2, 1<<40 + 1, 1 << 40} {
		model.insert(t, store, int(link%3), clicksOf(link, int(link%7)+1)...)
	}
	model.check(t, store)
}

func countsOnlyClicked(t *testing.T, store ClickStores) {
	for _, ids := range [][]int64{nil, {}, {unknownLink}} {
		counts, err := store.ClickCounts(t.Context(), 1, ids)
		testkit.Must(t, err)
		testkit.Equal(t, "counts", len(counts), 0)
	}
	model := newModel()
	model.insert(t, store, 0, append(clicksOf(1, 3), clicksOf(2, 4)...)...)
	counts, err := store.ClickCounts(t.Context(), 1, []int64{2, unknownLink, 3})
	testkit.Must(t, err)
	testkit.Equal(t, "counts", counts, map[int64]int64{2: 4})
}

func countsManyLinks(t *testing.T, store ClickStores) {
	model := newModel()
	var clicks []click
	ids := make([]int64, 0, 6000)
	for link := range int64(6000) {
		ids = append(ids, link+1)
		if link%6 == 0 {
			clicks = append(clicks, clicksOf(link+1, 1+int(link%5))...)
		}
	}
	const other = 3000 // of the account, and not asked for
	ids = slices.DeleteFunc(ids, func(id int64) bool { return id == other })
	model.insert(t, store, 0, clicksOf(other, 1)...)
	delete(model.links, other)
	model.insert(t, store, 0, clicks...)
	counts, err := store.ClickCounts(t.Context(), 1, ids)
	testkit.Must(t, err)
	testkit.Equal(t, "links with counts", len(counts), 1000)
	for link, want := range model.links {
		testkit.Equal(t, fmt.Sprintf("count of link %d", link), counts[link], want.total)
	}
}

func countsSeries(t *testing.T, store ClickStores) {
	first := epoch.Truncate(schema.ReportResolution)
	bounds := []time.Time{first, first.Add(schema.ReportResolution), first.Add(25 * time.Hour), first.Add(49 * time.Hour)}
	var clicks []click
	for at, link := range map[time.Duration]int64{
		-time.Second: 1, 0: 1, schema.ReportResolution - time.Millisecond: 1, schema.ReportResolution: 2, 24 * time.Hour: 1,
		48 * time.Hour: 2, 49 * time.Hour: 3,
	} {
		some := clicksOf(link, 2)
		for i := range some {
			some[i].at = first.Add(at)
		}
		some[0].names[schema.ByDevice] = schema.Bot
		clicks = append(clicks, some...)
	}
	newModel().insert(t, store, 0, clicks...)
	series, err := store.ClickSeries(t.Context(), 1, []int64{1, 2, 3, unknownLink}, bounds)
	testkit.Must(t, err)
	testkit.Equal(t, "series", series, map[int64][]int64{1: {4, 2, 0}, 2: {0, 2, 2}})
	series, err = store.ClickSeries(t.Context(), 1, nil, bounds)
	testkit.Must(t, err)
	testkit.Equal(t, "series of no links", series, nil, nilOrEmpty)
}

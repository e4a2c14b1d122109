package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TimedLinks is how many links BenchmarkLinkStores expects: "link-1" to "link-100000" on the default domain, all of one
// account, with URLs that end with "?n=" and the number.
const TimedLinks = 100_000

// BenchmarkLinkStores times the reads of links. Links shows whether the first and the last page cost the same.
func BenchmarkLinkStores(b *testing.B, store schema.Database, accountID int64) {
	b.Run("FindLink", func(b *testing.B) {
		var n atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := schema.FindLink(b.Context(), store, 0, fmt.Sprintf("link-%d", n.Add(7919)%TimedLinks+1)); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("FindOwnedLink", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := schema.FindOwnedLink(b.Context(), store, accountID, "link-777", nil)
			testkit.Must(b, err)
		}
	})
	for _, page := range []int64{1, 100, 5000} {
		b.Run(fmt.Sprintf("Links/page=%d", page), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				links, _, err := store.Links(b.Context(), accountID, schema.LinkFilter{}, page)
				testkit.Must(b, err)
				if len(links) != schema.PageSize {
					b.Fatalf("%d links", len(links))
				}
			}
		})
	}
	for query, found := range map[string]int64{"n=7777": 11, "link-": TimedLinks} {
		b.Run(fmt.Sprintf("Links/found=%d", found), func(b *testing.B) {
			for b.Loop() {
				_, total, err := store.Links(b.Context(), accountID, withWord(query), 1)
				testkit.Must(b, err)
				if total != found {
					b.Fatalf("%d links are found", total)
				}
			}
		})
	}
}

// BenchmarkClickStore times the reads of a store after days of Traffic, with so many clicks a day.
func BenchmarkClickStore(b *testing.B, store ClickStores, days, clicks int) {
	batch, traffic := new(schema.ClickBatch), NewTraffic()
	first := traffic.Day.AddDate(0, 0, 1)
	for range days {
		traffic.Day = traffic.Day.AddDate(0, 0, 1)
		traffic.Fill(batch, 0, clicks)
		testkit.Must(b, store.InsertClicks(b.Context(), batch))
	}
	for name, read := range map[string]func() error{
		"Position":  func() error { _, err := store.Position(b.Context(), 0); return err },
		"LinkStats": func() error { _, err := store.LinkStats(b.Context(), HotLink); return err },
		"report of a link": func() error {
			_, err := store.Report(b.Context(), Days(HotAccount, []int64{HotLink}, first, days))
			return err
		},
		"report of an account": func() error { _, err := store.Report(b.Context(), Days(HotAccount, nil, first, days)); return err },
	} {
		b.Run(fmt.Sprintf("%s/days=%d", name, days), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				testkit.Must(b, read())
			}
		})
	}
	for _, links := range []int{1, schema.PageSize, 1000} {
		ids := make([]int64, links)
		for i := range ids {
			ids[i] = int64(i*7919%TrafficLinks) + 1
		}
		b.Run(fmt.Sprintf("ClickCounts/days=%d/links=%d", days, links), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := store.ClickCounts(b.Context(), 1, ids)
				testkit.Must(b, err)
			}
		})
	}
}

// floodNames returns the combination of names with a number.
func floodNames(k int) map[schema.Dimension]string {
	return map[schema.Dimension]string{schema.ByDevice: schema.Mobile, schema.ByCountry: "DE",
		schema.ByReferrer: fmt.Sprint(k % 990), schema.ByLanguage: fmt.Sprint(k / 990 % 676),
		schema.ByBrowser: fmt.Sprint(k / 990 / 676), schema.ByOS: fmt.Sprint(k / 990 / 676 % 10)}
}

// BenchmarkFlood times the reads of an account after a visitor has clicked on one of its links with as many names as possible, and checks
// that nothing is lost and that the other links' counts are as they were.
func BenchmarkFlood(b *testing.B, store ClickStores, clicks int) {
	const account, link, others, each = 1, 1, 100, 50_000
	batch, n, at := new(schema.ClickBatch), 0, NewTraffic().Day
	for n < clicks {
		batch.Reset(0, int64(n))
		batch.Time = at
		for range each {
			k := n * 7919 % (990 * 676 * 20) // each combination once before one comes again
			c := click{link: link, account: account, at: at.Add(time.Duration(n%7200) * time.Second), names: floodNames(k)}
			if n%100 == 0 {
				c = click{link: int64(n/100%others) + link + 1, account: account, at: c.at,
					names: map[schema.Dimension]string{schema.ByDevice: schema.Mobile, schema.ByBrowser: "Safari"}}
			}
			appendClick(batch, int64(n), uint64(n)+1, c)
			n++
		}
		testkit.Must(b, store.InsertClicks(b.Context(), batch))
	}
	counts, err := store.ClickCounts(b.Context(), 1, []int64{link, link + 1, link + others})
	testkit.Must(b, err)
	testkit.Equal(b, "clicks", counts, map[int64]int64{link: int64(n - n/100), link + 1: int64(n / 100 / others), link + others: int64(n / 100 / others)})
	zone := func(q schema.ReportQuery, filter map[schema.Dimension]string, offset time.Duration) schema.ReportQuery {
		for i := range q.Bounds {
			q.Bounds[i] = q.Bounds[i].Add(offset)
		}
		q.Previous, q.Filter, q.Limit = q.Previous.Add(offset), filter, 1000
		return q
	}
	month, all := at.AddDate(0, 0, -27), map[schema.Dimension]string(nil)
	mobile, safari := map[schema.Dimension]string{schema.ByDevice: schema.Mobile}, map[schema.Dimension]string{schema.ByBrowser: "Safari"}
	for name, q := range map[string]schema.ReportQuery{
		"account":                zone(Days(account, nil, month, 30), all, 0),
		"account in a zone":      zone(Days(account, nil, month, 30), all, -3*time.Hour),
		"account, filter":        zone(Days(account, nil, month, 30), mobile, 0),
		"account, rare filter":   zone(Days(account, nil, month, 30), safari, 0),
		"account, filter, zone":  zone(Days(account, nil, month, 30), mobile, -3*time.Hour),
		"link":                   zone(Days(account, []int64{link}, month, 30), all, 0),
		"link in a zone":         zone(Days(account, []int64{link}, month, 30), all, -3*time.Hour),
		"link, filter, zone":     zone(Days(account, []int64{link}, month, 30), mobile, -3*time.Hour),
		"another link in a zone": zone(Days(account, []int64{link + 1}, month, 30), all, -3*time.Hour),
	} {
		b.Run(name, func(b *testing.B) {
			var sum int64
			for b.Loop() {
				report, err := store.Report(b.Context(), q)
				testkit.Must(b, err)
				sum = 0
				for _, p := range report.Series {
					sum += p.Total()
				}
				var browsers int64
				for _, name := range report.Names[schema.ByBrowser] {
					browsers += name.Total
				}
				testkit.Equal(b, "sum of browsers", browsers, sum)
			}
			b.ReportMetric(float64(sum), "clicks")
		})
	}
}

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

// BenchmarkLinkStores times the reads of links. That a page costs the same wherever it is shows in Links.
func BenchmarkLinkStores(b *testing.B, store schema.Database, accountID int64) {
	b.Run("Link", func(b *testing.B) {
		var n atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := store.Link(b.Context(), 0, fmt.Sprintf("link-%d", n.Add(7919)%TimedLinks+1)); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("OwnedLink", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := store.OwnedLink(b.Context(), accountID, "link-777", nil)
			testkit.Must(b, err)
		}
	})
	for _, page := range []int64{1, 100, 5000} {
		b.Run(fmt.Sprintf("Links/page=%d", page), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				links, _, err := store.Links(b.Context(), accountID, page)
				testkit.Must(b, err)
				if len(links) != schema.PageSize {
					b.Fatalf("%d links", len(links))
				}
			}
		})
	}
	for query, found := range map[string]int64{"n=7777": 11, "link-": TimedLinks} {
		b.Run(fmt.Sprintf("SearchLinks/found=%d", found), func(b *testing.B) {
			for b.Loop() {
				_, total, err := store.SearchLinks(b.Context(), accountID, query, 1)
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
	for range days {
		traffic.Day = traffic.Day.AddDate(0, 0, 1)
		traffic.Fill(batch, 0, clicks)
		testkit.Must(b, store.InsertClicks(b.Context(), batch))
	}
	for name, read := range map[string]func() error{
		"Position":   func() error { _, err := store.Position(b.Context(), 0); return err },
		"LinkStats":  func() error { _, err := store.LinkStats(b.Context(), HotLink); return err },
		"LinkReport": func() error { _, err := store.LinkReport(b.Context(), HotLink, time.Time{}); return err },
		"AccountReport": func() error {
			_, err := store.AccountReport(b.Context(), HotAccount, time.Time{}, time.Time{})
			return err
		},
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
				_, err := store.ClickCounts(b.Context(), ids)
				testkit.Must(b, err)
			}
		})
	}
}

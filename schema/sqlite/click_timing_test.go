package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

const (
	popularLinks = 1_000_000
	someAccounts = 1_000 // that own them
)

// traffic makes batches whose links follow a Zipf law, the popular ones anywhere among the IDs, as in real traffic.
type traffic struct {
	random                     *rand.Rand
	links, browsers, referrers *rand.Zipf
	next                       int64
	day                        time.Time
}

var (
	someDevices = []schema.Device{
		schema.Mobile, schema.Mobile, schema.Mobile, schema.Desktop, schema.Desktop, schema.Tablet, schema.Bot,
	}
	someBrowsers = []string{
		"Chrome", "Mobile Safari", "Safari", "Edge", "Samsung Internet", "Firefox", "Instagram", "Opera", "Googlebot",
		"Facebook", "UC Browser", "Brave", "Yandex Browser", "curl", "Vivaldi",
	}
	someReferrers = names(30, func(i int) string { return fmt.Sprintf("host-%d.example", i) })
	someCountries = names(20, func(i int) string { return string([]rune{rune('A' + i), rune('Z' - i)}) })
)

func names(n int, name func(i int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	return all
}

func newTraffic() *traffic {
	random := rand.New(rand.NewPCG(1, 2))
	return &traffic{
		random: random, links: rand.NewZipf(random, 1.1, 10, popularLinks-1),
		browsers:  rand.NewZipf(random, 1.3, 2, uint64(len(someBrowsers)-1)),
		referrers: rand.NewZipf(random, 1.3, 2, uint64(len(someReferrers)-1)),
		day:       time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC),
	}
}

func (tr *traffic) fill(b *schema.ClickBatch, clicks int) {
	b.Reset(0, tr.next)
	for i := range clicks {
		b.Offset = append(b.Offset, tr.next)
		tr.next++
		b.Lane = append(b.Lane, schema.Lane{Number: uint32(i % 8)})
		b.Seq = append(b.Seq, uint64(tr.next))
		link := int64(tr.links.Uint64()*7919%popularLinks) + 1
		b.LinkID, b.AccountID = append(b.LinkID, link), append(b.AccountID, link%someAccounts+1)
		b.ClickedAt = append(b.ClickedAt, tr.day.Add(time.Duration(i)*time.Millisecond))
		b.Device = append(b.Device, someDevices[tr.random.IntN(len(someDevices))])
		b.Browser = append(b.Browser, someBrowsers[tr.browsers.Uint64()])
		referrer := ""
		if tr.random.IntN(100) >= 60 {
			referrer = someReferrers[tr.referrers.Uint64()]
		}
		b.Referrer = append(b.Referrer, referrer)
		b.Country = append(b.Country, someCountries[min(tr.random.IntN(20), tr.random.IntN(20))])
	}
	b.Next = tr.next
}

func BenchmarkInsertClicks(b *testing.B) {
	for _, clicks := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("clicks=%d", clicks), func(b *testing.B) {
			store := openClicks(b, filepath.Join(b.TempDir(), "clicks.db"))
			batch, source := new(schema.ClickBatch), newTraffic()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				source.fill(batch, clicks)
				b.StartTimer()
				testkit.Must(b, store.InsertClicks(b.Context(), batch))
			}
			b.ReportMetric(float64(b.N*clicks)/b.Elapsed().Seconds(), "clicks/s")
		})
	}
}

// hotLink is the most popular one of traffic.
const hotLink = 1

// countedClicks returns a store with days of traffic.
func countedClicks(b *testing.B, days int) *sqlite.Clicks {
	store := openClicks(b, filepath.Join(b.TempDir(), "clicks.db"))
	batch, source := new(schema.ClickBatch), newTraffic()
	for range days {
		source.day = source.day.AddDate(0, 0, 1)
		source.fill(batch, 20_000)
		testkit.Must(b, store.InsertClicks(b.Context(), batch))
	}
	return store
}

func BenchmarkLinkStats(b *testing.B) {
	for _, days := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("days=%d", days), func(b *testing.B) {
			store := countedClicks(b, days)
			b.ReportAllocs()
			for b.Loop() {
				_, err := store.LinkStats(b.Context(), hotLink)
				testkit.Must(b, err)
			}
		})
	}
}

func BenchmarkReports(b *testing.B) {
	for _, days := range []int{1, 10, 100} {
		store := countedClicks(b, days)
		b.Run(fmt.Sprintf("LinkReport/days=%d", days), func(b *testing.B) {
			for b.Loop() {
				_, err := store.LinkReport(b.Context(), hotLink, time.Time{})
				testkit.Must(b, err)
			}
		})
		b.Run(fmt.Sprintf("AccountReport/days=%d", days), func(b *testing.B) {
			for b.Loop() {
				_, err := store.AccountReport(b.Context(), hotLink%someAccounts+1, time.Time{})
				testkit.Must(b, err)
			}
		})
	}
}

func BenchmarkClickCounts(b *testing.B) {
	store := countedClicks(b, 10)
	for _, links := range []int{1, schema.PageSize, 1000} {
		b.Run(fmt.Sprintf("links=%d", links), func(b *testing.B) {
			ids := make([]int64, links)
			for i := range ids {
				ids[i] = int64(i*7919%popularLinks) + 1
			}
			b.ReportAllocs()
			for b.Loop() {
				_, err := store.ClickCounts(b.Context(), ids)
				testkit.Must(b, err)
			}
		})
	}
}

package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"linkstream/schema"
)

const (
	TrafficLinks    = 1_000_000 // the links of Traffic have the IDs 1 to TrafficLinks
	TrafficAccounts = 1_000     // that own them
	HotLink         = 1         // the most popular one
	HotAccount      = HotLink%TrafficAccounts + 1
)

var (
	trafficDevices = []schema.Device{
		schema.Mobile, schema.Mobile, schema.Mobile, schema.Desktop, schema.Desktop, schema.Tablet, schema.Bot,
	}
	trafficBrowsers = []string{
		"Chrome", "Mobile Safari", "Safari", "Edge", "Samsung Internet", "Firefox", "Instagram", "Opera", "Googlebot",
		"Facebook", "UC Browser", "Brave", "Yandex Browser", "curl", "Vivaldi",
	}
	trafficReferrers = names(30, func(i int) string { return fmt.Sprintf("host-%d.example", i) })
	trafficSystems   = []string{"Android", "Android", "iOS", "iOS", "Windows", "Windows", "macOS", "Linux", "ChromeOS",
		schema.OtherName}
	trafficLanguages = names(20, func(i int) string { return string([]rune{rune('a' + i), rune('z' - i)}) })
	trafficCountries = names(20, func(i int) string { return string([]rune{rune('A' + i), rune('Z' - i)}) })
)

func names(n int, name func(i int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	return all
}

// Traffic makes batches of clicks as real traffic has them: their links follow a Zipf law, and the popular links are
// spread over all IDs. Every Traffic makes the same clicks.
type Traffic struct {
	Next   int64      // the offset of the next record
	Day    time.Time  // when the clicks of the next batch begin, a millisecond apart
	Random *rand.Rand // for tests that need more of it

	links, browsers, referrers *rand.Zipf
}

// NewTraffic returns traffic that begins at offset 0.
func NewTraffic() *Traffic {
	random := rand.New(rand.NewPCG(1, 2))
	return &Traffic{
		Random: random, Day: time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC),
		links:     rand.NewZipf(random, 1.1, 10, TrafficLinks-1),
		browsers:  rand.NewZipf(random, 1.3, 2, uint64(len(trafficBrowsers)-1)),
		referrers: rand.NewZipf(random, 1.3, 2, uint64(len(trafficReferrers)-1)),
	}
}

// Fill makes b the next batch of a partition, and moves Next past it.
func (tr *Traffic) Fill(b *schema.ClickBatch, partition, clicks int) {
	b.Reset(partition, tr.Next)
	b.Time = tr.Day
	for i := range clicks {
		b.Offset = append(b.Offset, tr.Next)
		tr.Next++
		b.Lane = append(b.Lane, schema.Lane{Incarnation: schema.Incarnation{1, 15: 1}, Number: uint32(i % 8)})
		b.Seq = append(b.Seq, uint64(tr.Next))
		link := int64(tr.links.Uint64()*7919%TrafficLinks) + 1
		b.LinkID, b.AccountID = append(b.LinkID, link), append(b.AccountID, link%TrafficAccounts+1)
		b.ClickedAt = append(b.ClickedAt, tr.Day.Add(time.Duration(i)*time.Millisecond))
		b.Device = append(b.Device, trafficDevices[tr.Random.IntN(len(trafficDevices))])
		b.Browser = append(b.Browser, trafficBrowsers[tr.browsers.Uint64()])
		referrer := ""
		if tr.Random.IntN(100) >= 60 {
			referrer = trafficReferrers[tr.referrers.Uint64()]
		}
		b.Referrer = append(b.Referrer, referrer)
		country := min(tr.Random.IntN(20), tr.Random.IntN(20))
		b.Country = append(b.Country, trafficCountries[country])
		b.OS = append(b.OS, trafficSystems[tr.Next*7919%int64(len(trafficSystems))])
		if tr.Next%5 == 0 { // most people speak the language of their country
			country = int(tr.Next / 5 % 20)
		}
		b.Language = append(b.Language, trafficLanguages[country])
		b.Visitor = append(b.Visitor, tr.Random.Uint64())
	}
	b.Next = tr.Next
	NoNames(b) // of routes, campaigns and paths
}

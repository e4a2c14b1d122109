package worker_test

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// Clicks as an edge produces them end up in the store's reports.
func TestReportsHoldTheSourceOfClicks(t *testing.T) {
	t.Parallel()
	client, store := streamtest.StartBroker(t).CreateTopics(1), openStore(t)
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"
	for i, c := range []schema.Click{
		{UserAgent: []byte(firefox), Referrer: []byte("https://www.News.example:8443/x?y"), Network: []byte{81, 2, 69}},
		{UserAgent: []byte(firefox), Referrer: []byte("http://news.example/z"), Network: []byte{81, 2, 69}},
		{UserAgent: []byte(firefox), Referrer: []byte("https://203.0.113.7/\xff"), Network: []byte{10, 0, 0}},
		{UserAgent: []byte("Twitterbot/1.0"), Referrer: []byte("https://bots.example/"), Network: []byte{81, 2, 70}},
	} {
		c.Lane, c.Seq, c.LinkID, c.AccountID, c.ClickedAt = lane(1), uint64(i)+1, link, account, noon
		produce(t, client, 0, schema.AppendClick(nil, &c))
	}
	startWith(t, openCountries(t), quick(), client, store)
	awaitTotal(t, store, 4)

	days := []schema.DayReport{{Date: "2026-11-21", People: 3, Bots: 1}}
	got, err := store.LinkReport(t.Context(), link, time.Time{})
	testkit.Must(t, err)
	want := schema.LinkReport{Days: days, Devices: map[schema.Device]int64{schema.Desktop: 3, schema.Bot: 1},
		Browsers:  []schema.NameCount{{Name: "Firefox", Total: 3}},
		Systems:   []schema.NameCount{{Name: "Linux", Total: 3}},
		Languages: []schema.NameCount{{Name: "", Total: 3}},
		Referrers: []schema.NameCount{{Name: "news.example", Total: 2}, {Name: "", Total: 1}},
		Countries: []schema.NameCount{{Name: "GB", Total: 2}, {Name: "", Total: 1}}}
	testkit.Equal(t, "link report", got, want)
	owned, err := store.AccountReport(t.Context(), account, time.Time{}, time.Time{})
	testkit.Must(t, err)
	wantOwned := schema.AccountReport{Days: days, Links: []schema.LinkCount{{LinkID: link, Total: 4}}}
	testkit.Equal(t, "account report", owned, wantOwned)
}

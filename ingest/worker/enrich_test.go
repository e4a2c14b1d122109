package worker_test

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// Clicks as an edge produces them end up in the store's reports.
func TestReportsHoldTheSourceOfClicks(t *testing.T) {
	t.Parallel()
	client, store := streamtest.StartBroker(t).CreateTopics(1), openStore(t)
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"
	for i, c := range []schema.Click{
		{UserAgent: []byte(firefox), Referrer: []byte("https://www.News.example:8443/x?y"), Network: []byte{81, 2, 69}, Visitor: 9},
		{UserAgent: []byte(firefox), Referrer: []byte("http://news.example/z"), Network: []byte{81, 2, 69}, Visitor: 7},
		{UserAgent: []byte(firefox), Referrer: []byte("https://203.0.113.7/\xff"), Network: []byte{10, 0, 0}, Visitor: 7},
		{UserAgent: []byte("Twitterbot/1.0"), Referrer: []byte("https://bots.example/"), Network: []byte{81, 2, 70}, Visitor: 8},
	} {
		c.Lane, c.Seq, c.LinkID, c.AccountID, c.ClickedAt = lane(1), uint64(i)+1, link, account, noon
		produce(t, client, 0, schema.AppendClick(nil, &c))
	}
	startWith(t, openCountries(t), quick(), client, store)
	awaitTotal(t, store, 4)

	for _, links := range [][]int64{{link}, nil} {
		got, err := store.Report(t.Context(), storetest.Days(account, links, noon, 1))
		testkit.Must(t, err)
		want := schema.Report{Series: []schema.Period{{People: 3, Bots: 1}}, Visitors: &schema.Visitors{Series: []int64{2}, Total: 2}, Names: map[schema.Dimension][]schema.NameCount{
			schema.ByDevice:   {{Name: schema.Desktop, Total: 3}},
			schema.ByBrowser:  {{Name: "Firefox", Total: 3}},
			schema.ByOS:       {{Name: "Linux", Total: 3}},
			schema.ByReferrer: {{Name: "news.example", Total: 2}, {Name: "", Total: 1}},
			schema.ByCountry:  {{Name: "GB", Total: 2}, {Name: "", Total: 1}},
		}}
		for _, by := range schema.Dimensions() {
			if want.Names[by] == nil {
				want.Names[by] = []schema.NameCount{{Name: "", Total: 3}}
			}
		}
		if links == nil {
			want.Links = []schema.LinkCount{{LinkID: link, Total: 4}}
		}
		testkit.Equal(t, "report", got, want)
	}
}

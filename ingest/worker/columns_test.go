package worker_test

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// inspector is a store that passes each batch to inspect.
type inspector struct {
	discardStore
	inspect func(*schema.ClickBatch)
}

func (s inspector) InsertClicks(_ context.Context, batch *schema.ClickBatch) error {
	s.inspect(batch)
	return nil
}

// The topic has in turn a click with every field, a click of a person, and a click with no field.
func TestBatchHasEveryColumn(t *testing.T) {
	const clicks = 12
	topic := &endlessTopic{bodies: [][]byte{
		schema.AppendClickBody(nil, &schema.Click{LinkID: link, AccountID: account, ClickedAt: noon,
			UserAgent: []byte("curl/8.5.0 (x86_64) Linux"), Referrer: []byte("https://www.News.example:8443/x?y"),
			Network:  []byte{81, 2, 69},
			Language: []byte("de-AT"), Route: []byte("phones"), Campaign: []byte("mail"), Visitor: 7}),
		schema.AppendClickBody(nil, &schema.Click{LinkID: link, AccountID: account, ClickedAt: noon, Visitor: 9,
			UserAgent: []byte("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"),
			Referrer:  []byte("https://203.0.113.7/\xff")}),
		schema.AppendClickBody(nil, &schema.Click{ClickedAt: noon, Network: []byte{10, 0, 0}}),
	}}
	batches := 0
	store := inspector{inspect: func(b *schema.ClickBatch) {
		batches++
		columns := reflect.ValueOf(*b)
		for _, field := range reflect.VisibleFields(columns.Type()) {
			if field.Type.Kind() != reflect.Slice || field.Name == "Gaps" { // not a column
				continue
			}
			if n := columns.FieldByIndex(field.Index).Len(); n != clicks {
				t.Fatalf("batch %d: got %d rows in column %s, want %d", batches, n, field.Name, clicks)
			}
		}
		type row struct {
			link, account int64
			at            time.Time
			names         map[schema.Dimension]string
			visitor       uint64 // none of bots
		}
		want := []row{{link, account, noon, map[schema.Dimension]string{schema.ByDevice: schema.Bot, schema.ByBrowser: "curl",
			schema.ByOS:       "Linux",
			schema.ByLanguage: "de", schema.ByReferrer: "news.example", schema.ByCountry: "GB", schema.ByRoute: "phones",
			schema.ByCampaign: "mail"}, 0},
			{link, account, noon, map[schema.Dimension]string{schema.ByDevice: schema.Desktop, schema.ByBrowser: "Firefox",
				schema.ByOS: "Linux"}, 9},
			{0, 0, noon, map[schema.Dimension]string{schema.ByDevice: schema.Bot, schema.ByBrowser: "Other",
				schema.ByOS: "Other"}, 0}}
		for i := range b.Len() {
			got := row{b.LinkID[i], b.AccountID[i], b.ClickedAt[i], map[schema.Dimension]string{}, b.Visitor[i]}
			for _, by := range schema.Dimensions() {
				if name := (*b.Names(by))[i]; name != "" {
					got.names[by] = name
				}
			}
			if !reflect.DeepEqual(got, want[i%len(want)]) {
				t.Errorf("batch %d, row %d: got %+v, want %+v", batches, i, got, want[i%len(want)])
			}
		}
	}}
	cfg := worker.Config{MaxBatch: clicks, MaxWait: time.Hour, IdleWait: time.Hour}
	p := worker.NewPartition(0, cfg, topic, store, openCountries(t), slog.New(slog.DiscardHandler))
	for range 3 {
		if _, err := p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if batches != 3 {
		t.Errorf("got %d batches, want 3", batches)
	}
}

// A worker gives its partitions the countries that it was made with.
func TestWorkerKnowsCountries(t *testing.T) {
	t.Parallel()
	client := streamtest.StartBroker(t).CreateTopics(1)
	produce(t, client, 0, schema.AppendClick(nil,
		&schema.Click{Lane: lane(1), Seq: 1, LinkID: link, ClickedAt: noon, Network: []byte{81, 2, 69}}))
	countries := make(chan []string, 1)
	store := inspector{inspect: func(b *schema.ClickBatch) { countries <- slices.Clone(*b.Names(schema.ByCountry)) }}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		testkit.Must(t, worker.New(quick(), client, store, openCountries(t), slog.New(slog.DiscardHandler),
			metrics.NewSet()).Run(ctx))
	})
	testkit.Equal(t, "countries", <-countries, []string{"GB"})
	cancel()
	running.Wait()
}

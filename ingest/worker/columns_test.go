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
	"linkstream/schema/enrich"
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
	sent := []schema.Click{
		{LinkID: link, AccountID: account, ClickedAt: noon, UserAgent: []byte("curl/8.5.0 (x86_64) Linux"),
			Referrer: []byte("https://www.News.example:8443/x?y"), Network: []byte{81, 2, 69}, Language: []byte("de-AT"),
			Route: []byte("phones"), Campaign: []byte("mail"), Path: []byte("docs"), Visitor: 7},
		{LinkID: link, AccountID: account, ClickedAt: noon, Visitor: 9,
			UserAgent: []byte("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"),
			Referrer:  []byte("https://203.0.113.7/\xff")},
		{ClickedAt: noon, Network: []byte{10, 0, 0}},
	}
	topic, sources := new(endlessTopic), new(schema.ClickBatch) // with the names of what was sent
	for i := range sent {
		topic.bodies = append(topic.bodies, schema.AppendClickBody(nil, &sent[i]))
		source := enrich.New(openCountries(t)).Enrich(&sent[i])
		source.AppendTo(sources)
	}
	for _, by := range schema.Dimensions() {
		if (*sources.Names(by))[0] == "" {
			t.Fatalf("the first click has no %s", by)
		}
	}
	visitors := []uint64{0, 9, 0} // none of bots
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
		for i := range b.Len() {
			at := i % len(sent)
			testkit.Equal(t, "link", b.LinkID[i], sent[at].LinkID)
			testkit.Equal(t, "account", b.AccountID[i], sent[at].AccountID)
			testkit.Equal(t, "time", b.ClickedAt[i], sent[at].ClickedAt)
			testkit.Equal(t, "visitor", b.Visitor[i], visitors[at])
			for _, by := range schema.Dimensions() {
				testkit.Equal(t, string(by), (*b.Names(by))[i], (*sources.Names(by))[at])
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

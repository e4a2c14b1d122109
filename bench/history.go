package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"linkstream/bench/load"
	"linkstream/ingest/enrich"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

const (
	historyDays  = 30
	historyBatch = 100_000
	// historyPartition is none that the topic has: the clicks of a history were never on it.
	historyPartition = 1 << 20
	historyAccount   = 1 // seed makes the first account of a new database
)

// history is clicks of the last days that a service has counted before it starts.
type history struct {
	links  linkSet
	clicks []int64 // of each link
}

func newHistory(links linkSet) *history { return &history{links, make([]int64, links.count)} }

// fill stores so many clicks in the data directory of a service that has yet to start, by the popularity of the links.
func (h *history) fill(ctx context.Context, data string, clicks int) error {
	store, err := sqlite.OpenClicks(ctx, filepath.Join(data, "clicks.db"))
	if err != nil {
		return err
	}
	popularity := load.NewPopularity(h.links.count, crowdSeed)
	enricher := enrich.New(nil)
	var sources []enrich.Source
	for _, v := range load.Visitors(crowdSize, crowdSeed) {
		click := schema.Click{UserAgent: []byte(v.UserAgent), Referrer: []byte(v.Referrer)}
		sources = append(sources, enricher.Enrich(&click))
	}
	start := time.Now().UTC().AddDate(0, 0, -historyDays)
	spacing := historyDays * 24 * time.Hour / time.Duration(clicks)
	var batch schema.ClickBatch
	for n := 0; n < clicks && err == nil; {
		batch.Reset(historyPartition, int64(n))
		for ; n < clicks && batch.Len() < historyBatch; n++ {
			link, source := popularity.Next(), sources[n%len(sources)]
			h.clicks[link]++
			batch.Offset = append(batch.Offset, int64(n))
			batch.Lane, batch.Seq = append(batch.Lane, schema.Lane{}), append(batch.Seq, uint64(n)+1)
			batch.LinkID = append(batch.LinkID, int64(link)+1) // seed makes the links of a new database, in order
			batch.ClickedAt = append(batch.ClickedAt, start.Add(time.Duration(n)*spacing))
			batch.AccountID = append(batch.AccountID, historyAccount)
			batch.Device, batch.Browser = append(batch.Device, source.Device), append(batch.Browser, source.Browser)
			batch.Referrer, batch.Country = append(batch.Referrer, source.Referrer), append(batch.Country, source.Country)
		}
		batch.Next = int64(n)
		err = store.InsertClicks(ctx, &batch)
	}
	return errors.Join(err, store.Close())
}

// hottest returns the link with the most clicks.
func (h *history) hottest() (link int) {
	for i, n := range h.clicks {
		if n > h.clicks[link] {
			link = i
		}
	}
	return link
}

// openWithHistory opens the service. A running one has no history: its links are new.
func (b *bench) openWithHistory(ctx context.Context, h *history) (*service, error) {
	return b.open(ctx, h.links, func(ctx context.Context, data string) error {
		b.say("storing %d clicks", b.cfg.Clicks)
		return h.fill(ctx, data, b.cfg.Clicks)
	})
}

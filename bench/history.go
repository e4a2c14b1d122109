package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"linkstream/bench/load"
	"linkstream/ingest/enrich"
	"linkstream/schema"
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
	links      linkSet
	clicks     []int64 // of each link
	popularity *load.Popularity
	hot        float64 // share of the clicks that are on the first link whatever its popularity
	random     *rand.Rand
	sources    []enrich.Source // of the crowd
}

func newHistory(links linkSet, hot float64) *history {
	h := &history{links: links, clicks: make([]int64, links.count), hot: hot,
		popularity: load.NewPopularity(links.count, crowdSeed), random: rand.New(rand.NewPCG(crowdSeed, 0))}
	enricher := enrich.New(nil)
	for _, v := range load.Visitors(crowdSize, crowdSeed) {
		click := schema.Click{UserAgent: []byte(v.UserAgent), Referrer: []byte(v.Referrer)}
		h.sources = append(h.sources, enricher.Enrich(&click))
	}
	return h
}

// append appends clicks to a batch, the first at start, by the popularity of the links.
func (h *history) append(b *schema.ClickBatch, clicks int, start time.Time, spacing time.Duration) {
	for i := range clicks {
		link, source, n := h.popularity.Next(), h.sources[b.Len()%len(h.sources)], b.Next
		if h.random.Float64() < h.hot {
			link = 0
		}
		h.clicks[link]++
		b.Offset, b.Lane, b.Seq = append(b.Offset, n), append(b.Lane, schema.Lane{}), append(b.Seq, uint64(n)+1)
		b.LinkID = append(b.LinkID, int64(link)+1) // seed makes the links of a new database, in order
		b.AccountID = append(b.AccountID, historyAccount)
		b.ClickedAt = append(b.ClickedAt, start.Add(time.Duration(i)*spacing))
		b.Device, b.Browser = append(b.Device, source.Device), append(b.Browser, source.Browser)
		b.Referrer, b.Country = append(b.Referrer, source.Referrer), append(b.Country, source.Country)
		b.Next = n + 1
	}
}

// fill stores so many clicks before the service starts.
func (h *history) fill(ctx context.Context, store schema.ClickStore, clicks int) error {
	begin := time.Now().UTC().AddDate(0, 0, -historyDays)
	spacing := historyDays * 24 * time.Hour / time.Duration(clicks)
	var batch schema.ClickBatch
	for n := 0; n < clicks; n += batch.Len() {
		batch.Reset(historyPartition, int64(n))
		batch.Time = begin.Add(time.Duration(n) * spacing)
		h.append(&batch, min(historyBatch, clicks-n), batch.Time, spacing)
		if err := store.InsertClicks(ctx, &batch); err != nil {
			return err
		}
	}
	return nil
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
func (b *bench) openWithHistory(ctx context.Context, h *history) (*runningService, error) {
	return b.open(ctx, h.links, func(ctx context.Context, on engines) error {
		b.say("storing %d clicks", b.cfg.Clicks)
		store, err := on.openClicks(ctx, "")
		if err != nil {
			return err
		}
		return errors.Join(h.fill(ctx, store, b.cfg.Clicks), store.Close(), on.rest(ctx))
	})
}

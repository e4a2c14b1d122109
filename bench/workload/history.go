package workload

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"linkstream/bench/load"
	"linkstream/ingest/enrich"
	"linkstream/schema"
)

// Account is the account of all links and clicks: the first one of a new database.
const Account = 1

const (
	historyDays  = 30
	historyBatch = 100_000
	// historyPartition is a partition that the topic does not have: the clicks of a history never were in the topic. Each account
	// has one of its own.
	historyPartition = 1 << 20
)

// History is the clicks of the last days that are stored before the service starts.
type History struct {
	Links  Links
	Clicks []int64 // stored clicks of each link
	Mobile []int64 // those from mobile devices

	// AccountID owns the links, which have the IDs from FirstID on. A new database numbers accounts and links from 1, in the order of
	// their creation.
	AccountID, FirstID int64

	popularity *load.Popularity
	begin      time.Time
	hot        float64 // share of the clicks that are on the first link, in addition to its share by Zipf's law
	random     *rand.Rand
	sources    []enrich.Source // of the visitors
	streams    atomic.Uint64   // of random numbers, so far
}

// NewHistory returns an empty history.
func NewHistory(links Links, hot float64) *History {
	h := &History{Links: links, Clicks: make([]int64, links.Count), Mobile: make([]int64, links.Count), AccountID: Account, FirstID: 1,
		hot: hot, popularity: Popularity(links.Count), random: Random(0), begin: time.Now().UTC().AddDate(0, 0, -historyDays)}
	enricher := enrich.New(nil)
	for _, v := range Visitors() {
		click := schema.Click{UserAgent: []byte(v.UserAgent), Referrer: []byte(v.Referrer)}
		h.sources = append(h.sources, enricher.Enrich(&click))
	}
	return h
}

// Append appends clicks to a batch, spaced evenly from start on.
func (h *History) Append(b *schema.ClickBatch, clicks int, start time.Time, spacing time.Duration) {
	for i := range clicks {
		link, source, n := h.popularity.Next(), h.sources[b.Len()%len(h.sources)], b.Next
		if h.random.Float64() < h.hot {
			link = 0
		}
		h.Clicks[link]++
		if source.Device == schema.Mobile {
			h.Mobile[link]++
		}
		b.Offset, b.Lane, b.Seq = append(b.Offset, n), append(b.Lane, schema.Lane{}), append(b.Seq, uint64(n)+1)
		b.LinkID, b.AccountID = append(b.LinkID, h.FirstID+int64(link)), append(b.AccountID, h.AccountID)
		b.ClickedAt = append(b.ClickedAt, start.Add(time.Duration(i)*spacing))
		b.Device, b.Browser = append(b.Device, source.Device), append(b.Browser, source.Browser)
		b.Referrer, b.Country = append(b.Referrer, source.Referrer), append(b.Country, source.Country)
		b.OS, b.Language = append(b.OS, source.OS), append(b.Language, source.Language)
		b.Next = n + 1
	}
}

// Begin returns the time of the first click.
func (h *History) Begin() time.Time { return h.begin }

// Store stores clicks of the last days.
func (h *History) Store(ctx context.Context, store schema.ClickStore, clicks int) error {
	begin := h.Begin()
	spacing := historyDays * 24 * time.Hour / time.Duration(clicks)
	var batch schema.ClickBatch
	for n := 0; n < clicks; n += batch.Len() {
		batch.Reset(historyPartition+int(h.AccountID), int64(n))
		batch.Time = begin.Add(time.Duration(n) * spacing)
		h.Append(&batch, min(historyBatch, clicks-n), batch.Time, spacing)
		if err := store.InsertClicks(ctx, &batch); err != nil {
			return err
		}
	}
	return nil
}

// Times returns the history of a store that has each click of h so many times.
func (h *History) Times(n int64) *History {
	return &History{Links: h.Links, Clicks: times(h.Clicks, n), Mobile: times(h.Mobile, n), AccountID: h.AccountID, FirstID: h.FirstID,
		begin: h.begin}
}

func times(counts []int64, n int64) []int64 {
	many := slices.Clone(counts)
	for i := range many {
		many[i] *= n
	}
	return many
}

// AnyLink returns what chooses one of all links, differently each time that it is called.
func (h *History) AnyLink() func() int {
	random := Random(h.streams.Add(1))
	return func() int { return random.IntN(h.Links.Count) }
}

// TheMostVisited returns what always chooses the link with the most clicks.
func (h *History) TheMostVisited() func() int {
	link := h.MostVisited()
	return func() int { return link }
}

// MostVisited returns the link with the most clicks.
func (h *History) MostVisited() (link int) {
	for i, n := range h.Clicks {
		if n > h.Clicks[link] {
			link = i
		}
	}
	return link
}

// SampleClicks returns n clicks of different visitors.
func SampleClicks(n int) []schema.Click {
	clicks := make([]schema.Click, n)
	visitors := Visitors()
	for i := range clicks {
		v := visitors[i%len(visitors)]
		clicks[i] = schema.Click{LinkID: int64(i) + 1, AccountID: Account, ClickedAt: time.Now(),
			UserAgent: []byte(v.UserAgent), Referrer: []byte(v.Referrer), Network: []byte{192, 0, 2}}
	}
	return clicks
}

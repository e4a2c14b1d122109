package workload

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"linkstream/bench/load"
	"linkstream/schema"
	"linkstream/schema/enrich"
)

// Account is the account of all links and clicks: the first one of a new database.
const Account = 1

const (
	historyDays  = 30
	historyBatch = 100_000
	// historyPartition is a partition that no topic has, since the clicks of a history come from no topic. Each account
	// has its own partition.
	historyPartition = 1 << 20
)

// History is the clicks of the last days that are stored before the service starts.
type History struct {
	Links  Links
	Clicks []int64 // stored clicks of each link

	// AccountID owns the links, whose IDs begin at FirstID. A new database numbers accounts and links from 1, in the order
	// of their creation.
	AccountID, FirstID int64

	Batch int // clicks per insert

	popularity *load.Popularity
	begin      time.Time
	hot        float64 // share of the clicks on the first link, in addition to its share by Zipf's law
	random     *rand.Rand
	sources    []enrich.Source // of the visitors
	streams    atomic.Uint64   // of random numbers, so far
}

// NewHistory returns an empty history.
func NewHistory(links Links, hot float64) *History {
	h := &History{Links: links, Clicks: make([]int64, links.Count), AccountID: Account, FirstID: 1, Batch: historyBatch,
		hot: hot, popularity: Popularity(links.Count), random: Random(0), begin: time.Now().UTC().AddDate(0, 0, -historyDays)}
	enricher := enrich.New(nil)
	for _, v := range Visitors(DefaultVisitors) {
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
		b.Offset, b.Seq = append(b.Offset, n), append(b.Seq, uint64(n)+1)
		b.Lane = append(b.Lane, schema.Lane{Number: uint32(h.AccountID)})
		b.LinkID, b.AccountID = append(b.LinkID, h.FirstID+int64(link)), append(b.AccountID, h.AccountID)
		b.ClickedAt = append(b.ClickedAt, start.Add(time.Duration(i)*spacing))
		source.AppendTo(b)
		b.Visitor = append(b.Visitor, h.random.Uint64())
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
		h.Append(&batch, min(h.Batch, clicks-n), batch.Time, spacing)
		if err := store.InsertClicks(ctx, &batch); err != nil {
			return err
		}
	}
	return nil
}

// AnyLink returns a function that chooses any link. Each function has its own sequence.
func (h *History) AnyLink() func() int {
	random := Random(h.streams.Add(1))
	return func() int { return random.IntN(h.Links.Count) }
}

// TheMostVisited returns a function that always chooses the link with the most clicks.
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

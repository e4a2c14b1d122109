package reads

import (
	"context"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
)

// Store is a click store.
type Store interface {
	schema.ClickStore
	schema.ReportStore
	schema.HistoryStore
}

// Clicks is a click store whose reads take turns. It is a schema.ReportStore; Of has the counts of links.
type Clicks struct {
	store Store
	turns *store
}

var _ schema.ReportStore = (*Clicks)(nil)

// NewClicks returns the reads of a store. It counts refused reads in set.
func NewClicks(clicks Store, set *metrics.Set) *Clicks {
	return &Clicks{clicks, newStore("clicks", clicks.Readers(), set)}
}

// patience is how many long reads of a client may wait before its reports let other clients' reports go first.
const patience = 4

// Report implements schema.ReportStore.
func (c *Clicks) Report(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	report := func() (schema.Report, error) {
		q.Yields = c.turns.long.WaitingOf(clientOf(ctx, q.AccountID)) > patience
		return c.store.Report(ctx, q)
	}
	if readsLittle(q) {
		return read(ctx, c.turns, c.turns.short, countReads, q.AccountID, report)
	}
	return read(ctx, c.turns, c.turns.long, reportReads, q.AccountID, report)
}

// shortRange is how many days a report in any time zone may have as a short read: stores have sums by the quarter of an
// hour.
const shortRange = 100 * 24 * time.Hour

// readsLittle reports whether a query counts only the clicks by day, of an account or of a link.
func readsLittle(q schema.ReportQuery) bool {
	return q.NoNames && !q.TopLinks && len(q.Filter) == 0 && len(q.Links) <= 1 &&
		(q.OfUTCDays() || q.End().Sub(q.Previous) <= shortRange)
}

// ClickSeries implements schema.ReportStore.
func (c *Clicks) ClickSeries(
	ctx context.Context, accountID int64, linkIDs []int64, bounds []time.Time,
) (map[int64][]int64, error) {
	return read(ctx, c.turns, c.turns.short, countReads, accountID, func() (map[int64][]int64, error) {
		return c.store.ClickSeries(ctx, accountID, linkIDs, bounds)
	})
}

// ReportDetail implements schema.ReportStore. It takes no turn.
func (c *Clicks) ReportDetail(ctx context.Context) (schema.ReportDetail, error) {
	return c.store.ReportDetail(ctx)
}

// SetHistories replaces imported clicks like schema.HistoryStore.SetHistories. It takes no turn.
func (c *Clicks) SetHistories(ctx context.Context, histories ...schema.History) error {
	return c.store.SetHistories(ctx, histories...)
}

// DeleteHistory takes imported clicks away like schema.HistoryStore.DeleteHistory. It takes no turn.
func (c *Clicks) DeleteHistory(ctx context.Context, linkID int64, source string) error {
	return c.store.DeleteHistory(ctx, linkID, source)
}

// Of returns the reads of an account.
func (c *Clicks) Of(accountID int64) Counts { return Counts{c, accountID} }

// Counts reads the counts of an account's links.
type Counts struct {
	clicks  *Clicks
	account int64
}

// LinkStats reads like schema.ClickStore.LinkStats.
func (c Counts) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	s := c.clicks.turns
	return read(ctx, s, s.short, countReads, c.account, func() (schema.Stats, error) {
		return c.clicks.store.LinkStats(ctx, linkID)
	})
}

// History reads like schema.HistoryStore.History.
func (c Counts) History(ctx context.Context, linkID int64, source string) (schema.History, error) {
	s := c.clicks.turns
	return read(ctx, s, s.short, countReads, c.account, func() (schema.History, error) {
		return c.clicks.store.History(ctx, linkID, source)
	})
}

// ClickTotals reads the clicks of links like schema.ClickStore.ClickTotals.
func (c Counts) ClickTotals(ctx context.Context, linkIDs []int64) (map[int64]schema.Period, error) {
	s := c.clicks.turns
	return read(ctx, s, s.long, listReads, c.account, func() (map[int64]schema.Period, error) {
		sums, _, err := c.clicks.store.ClickTotals(ctx, linkIDs, nil)
		return sums, err
	})
}

// ClickCounts reads like schema.ClickStore.ClickCounts.
func (c Counts) ClickCounts(ctx context.Context, linkIDs []int64) (map[int64]int64, error) {
	s := c.clicks.turns
	count := func() (map[int64]int64, error) { return c.clicks.store.ClickCounts(ctx, c.account, linkIDs) }
	if len(linkIDs) <= shortRead {
		return read(ctx, s, s.short, countReads, c.account, count)
	}
	return read(ctx, s, s.long, listReads, c.account, count)
}

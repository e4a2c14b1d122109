package schema

import (
	"context"
	"iter"
	"time"
)

// Bounds of what sources say about a link.
const (
	MaxHistoryDays    = 5000
	MaxHistorySources = 5 // of a link
	// MaxHistoriesDays and MaxHistories bound what is replaced at once.
	MaxHistoriesDays = 4 * MaxHistoryDays
	MaxHistories     = 1000
	// MaxImportedClicks is the most clicks of a day that a source can state. Sums over accounts stay far below 2^63.
	MaxImportedClicks = 1_000_000_000
)

// Imported is the browser of imported clicks. Their device is Other, and they have no other names.
const Imported = "Imported"

var importedNames = map[Dimension]string{ByDevice: Other, ByBrowser: Imported}

// importedHour is the hour of a UTC day at which reports count its imported clicks. Sources know dates and no time of
// the day: at 10:00 UTC almost every time zone has the date of the UTC day, from Hawaii to New Zealand.
const importedHour = 10 * time.Hour

// History is the clicks on a link that another service, the source, has counted.
type History struct {
	AccountID, LinkID int64 // the link and its owner
	Source            string
	Days              []DayCount // in the order of their dates, each date once
}

// Total returns the clicks of all days.
func (h *History) Total() (clicks int64) {
	for _, day := range h.Days {
		clicks += day.Total
	}
	return clicks
}

// Check returns CodeInternal unless a store can keep the history.
func (h *History) Check() error {
	last := ""
	for _, day := range h.Days {
		at, err := time.Parse(time.DateOnly, day.Date)
		if err != nil || at.Unix() < 0 || day.Date <= last || day.Total < 0 || day.Total > MaxImportedClicks {
			return Errorf(CodeInternal, "a history with %d clicks on %q after %q", day.Total, day.Date, last)
		}
		last = day.Date
	}
	if !ValidTag(h.Source) || len(h.Days) > MaxHistoryDays {
		return Errorf(CodeInternal, "a history of %d days by %q", len(h.Days), h.Source)
	}
	return nil
}

// CheckHistories returns CodeInternal unless a store can replace the histories at once: see HistoryBatches.
func CheckHistories(histories []History) error {
	days, seen := 0, make(map[historyKey]bool, len(histories))
	for i := range histories {
		h := &histories[i]
		if err := h.Check(); err != nil {
			return err
		}
		days += len(h.Days)
		seen[historyKey{h.LinkID, h.Source}] = true
	}
	if len(seen) < len(histories) || len(histories) > MaxHistories || days > MaxHistoriesDays {
		return Errorf(CodeInternal, "%d histories of %d links and sources with %d days", len(histories), len(seen), days)
	}
	return nil
}

type historyKey struct {
	link   int64
	source string
}

// HistoryBatches divides histories into batches for SetHistories.
func HistoryBatches(histories []History) iter.Seq[[]History] {
	return func(yield func([]History) bool) {
		for len(histories) > 0 {
			n, days := 0, 0
			for n < min(len(histories), MaxHistories) && days+len(histories[n].Days) <= MaxHistoriesDays {
				days += len(histories[n].Days)
				n++
			}
			n = max(n, 1)
			if !yield(histories[:n]) {
				return
			}
			histories = histories[n:]
		}
	}
}

// HistoryStore keeps the clicks that other services have counted, beside the clicks of a ClickStore. They are in
// every count of the ClickStore and the ReportStore except people, bots, visitors and names: see Period.Imported.
type HistoryStore interface {
	// SetHistories replaces, for each link and source, all that the source has said about the link, and returns when that
	// is on the disk. It replaces all histories at once or none, so it may be repeated after any error. CodeInvalid, and
	// none is replaced, if a link would have more than MaxHistorySources sources; CodeInternal for histories that
	// CheckHistories refuses.
	SetHistories(ctx context.Context, histories ...History) error
	// DeleteHistory takes away all that a source has said about a link. CodeNotFound if it has said nothing.
	DeleteHistory(ctx context.Context, linkID int64, source string) error
	// History returns what a source has said about a link. CodeNotFound if it has said nothing.
	History(ctx context.Context, linkID int64, source string) (History, error)
	// ImportedSums returns the imported clicks of all links in each form in which the store keeps them, by its name, all
	// of one moment: they are the same. It reads everything: it is for commands.
	ImportedSums(ctx context.Context) (map[string]uint64, error)
}

// Errors of a HistoryStore.
var (
	ErrManySources = ClientErrorf(CodeInvalid, "A link has the clicks of at most %d sources.", MaxHistorySources)
	ErrNoHistory   = ClientErrorf(CodeNotFound, "The link has no clicks of this source.")
)

// ImportedAt returns the time at which reports count the imported clicks of a UTC day.
func ImportedAt(day int64) time.Time {
	return time.Unix(day*int64(utcDay/time.Second), 0).Add(importedHour).UTC()
}

// ImportedSince returns the first UTC day whose imported clicks are counted at a time or later.
func ImportedSince(at time.Time) int64 {
	return DayNumber(at.Add(utcDay - importedHour - time.Nanosecond))
}

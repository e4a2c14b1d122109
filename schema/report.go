package schema

import (
	"context"
	"time"
)

// TopNames is the maximum number of browsers, referrers, countries and links in a report.
const TopNames = 10

// DayReport counts the clicks of a UTC day. Clicks of device Bot are bots, all others are people.
type DayReport struct {
	Date         string // 2006-01-02
	People, Bots int64
}

// NameCount counts the clicks with a name.
type NameCount struct {
	Name  string
	Total int64
}

// LinkReport holds the counts of one link over some days, consistent with each other.
type LinkReport struct {
	Days    []DayReport // days that have clicks, ascending
	Devices map[Device]int64
	// The TopNames most frequent names among people's clicks, ties ordered by name; "" means unknown.
	Browsers, Referrers, Countries []NameCount
}

// LinkCount counts the clicks of a link.
type LinkCount struct {
	LinkID int64
	Total  int64
}

// AccountReport holds the counts of all links of one account over some days, consistent with each other.
type AccountReport struct {
	Days  []DayReport // days that have clicks, ascending
	Links []LinkCount // the TopNames links with the most clicks, including bots; ties ordered by ID
}

// ReportStore reports the clicks that a ClickStore has counted.
type ReportStore interface {
	// LinkReport reports a link's clicks from the UTC day of since on; the zero time means all.
	LinkReport(ctx context.Context, linkID int64, since time.Time) (LinkReport, error)
	// AccountReport reports the clicks of all links of an account in the same way. It leaves out clicks without
	// AccountID.
	AccountReport(ctx context.Context, accountID int64, since time.Time) (AccountReport, error)
}

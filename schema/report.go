package schema

import (
	"context"
	"time"
)

// TopNames is how many browsers, referrers, countries and links a report names.
const TopNames = 10

// DayReport is the number of clicks on a UTC day, bots apart from people: every device but Bot.
type DayReport struct {
	Date         string // 2006-01-02
	People, Bots int64
}

// NameCount is how often something occurs.
type NameCount struct {
	Name  string
	Total int64
}

// LinkReport are the counts of one link over some days, all of one moment.
type LinkReport struct {
	Days    []DayReport // days that have clicks, ascending
	Devices map[Device]int64
	// Of people's clicks, the TopNames most frequent, ties by name; "" stands for what is not known.
	Browsers, Referrers, Countries []NameCount
}

// LinkCount is the number of clicks on a link.
type LinkCount struct {
	LinkID int64
	Total  int64
}

// AccountReport are the counts of all links of one account over some days, all of one moment.
type AccountReport struct {
	Days  []DayReport // days that have clicks, ascending
	Links []LinkCount // the TopNames with the most clicks, bots included; ties by ID
}

// ReportStore tells an account's owner about clicks. A ClickStore that has counted a click reports it.
type ReportStore interface {
	// LinkReport reports a link's clicks of the UTC day of since and of later ones; the zero time means all.
	LinkReport(ctx context.Context, linkID int64, since time.Time) (LinkReport, error)
	// AccountReport does so for all links of an account. Clicks that came without an account are not in it.
	AccountReport(ctx context.Context, accountID int64, since time.Time) (AccountReport, error)
}

package schema

import (
	"context"
	"slices"
	"time"
)

// TopNames is the maximum number of names of each kind and of links in a report.
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
	Browsers, Systems, Languages, Referrers, Countries []NameCount
}

// LinkCount counts the clicks of a link.
type LinkCount struct {
	LinkID int64
	Total  int64
}

// AccountReport holds the counts of all links of one account over some days, which are of one moment.
type AccountReport struct {
	Days  []DayReport // days that have clicks, ascending
	Links []LinkCount // the TopNames links with the most clicks, including bots; ties ordered by ID
}

// ReportStore reports the clicks that a ClickStore has counted.
type ReportStore interface {
	// LinkReport reports a link's clicks from the UTC day of since on; the zero time means all.
	LinkReport(ctx context.Context, linkID int64, since time.Time) (LinkReport, error)
	// AccountReport reports the clicks of all links of an account in the same way, and the links with the most clicks from the UTC day
	// of linksSince on, which is not before since. It leaves out clicks without AccountID.
	AccountReport(ctx context.Context, accountID int64, since, linksSince time.Time) (AccountReport, error)
	// AccountDays returns the days of AccountReport alone. Unlike those of the links, its cost does not grow with their number.
	AccountDays(ctx context.Context, accountID int64, since time.Time) ([]DayReport, error)
	// Report reports the clicks that a query selects. All counts are of one moment. CodeInternal for a query that Check refuses.
	// It returns approximate counts if the query needs more than what ReportDetail says is known.
	Report(ctx context.Context, query ReportQuery) (Report, error)
	// ReportDetail says what is known about old clicks.
	ReportDetail(ctx context.Context) (ReportDetail, error)
}

// Dimension is a property of clicks by which a report breaks them down.
type Dimension string

// The dimensions. Device has the values of type Device, the others are columns of ClickBatch.
const (
	ByDevice   Dimension = "device"
	ByBrowser  Dimension = "browser"
	ByOS       Dimension = "os"
	ByLanguage Dimension = "language"
	ByReferrer Dimension = "referrer"
	ByCountry  Dimension = "country"
)

// Dimensions returns all dimensions, in the order in which reports show them.
func Dimensions() []Dimension {
	return []Dimension{ByDevice, ByBrowser, ByOS, ByLanguage, ByReferrer, ByCountry}
}

// ReportResolution divides every boundary of a report's periods: the offsets of all time zones are multiples of it.
const ReportResolution = 15 * time.Minute

// MaxReportLinks bounds the links that a query names.
const MaxReportLinks = 5000

// ReportQuery selects clicks and says how to count them.
type ReportQuery struct {
	// AccountID is the owner of the links.
	AccountID int64
	// Links are links of the account whose clicks are counted, in any order, at most MaxReportLinks; nil for all of them. Clicks without an account are
	// counted only if the links are named.
	Links []int64
	// Bounds are the beginnings of the periods of the series, ascending, and the end of the last one.
	Bounds []time.Time
	// Previous is the beginning of the time before Bounds[0] to compare with.
	Previous time.Time
	// Filter leaves the clicks that have these names.
	Filter map[Dimension]string
	// Limit is how many names of each dimension are returned, and how many links.
	Limit int
	// TopLinks says whether links are returned.
	TopLinks bool
	// OnlyLinks leaves out names, which take most of the time of a report. Only with TopLinks.
	OnlyLinks bool
}

// Check returns CodeInternal for a query that no store can answer.
func (q *ReportQuery) Check() error {
	n := len(q.Bounds)
	if len(q.Links) > MaxReportLinks {
		return Errorf(CodeInternal, "a report of %d links", len(q.Links))
	}
	if n < 2 || q.Limit < 1 {
		return Errorf(CodeInternal, "a report of %d bounds with %d names", n, q.Limit)
	}
	if q.OnlyLinks && !q.TopLinks {
		return Errorf(CodeInternal, "a report of neither names nor links")
	}
	last := q.Previous.Add(-1)
	for _, at := range append([]time.Time{q.Previous}, q.Bounds...) {
		if !at.After(last) || at.Truncate(ReportResolution) != at || at.Unix() < 0 {
			return Errorf(CodeInternal, "a report with the bound %v after %v", at, last)
		}
		last = at
	}
	for dimension := range q.Filter {
		if !slices.Contains(Dimensions(), dimension) {
			return Errorf(CodeInternal, "a report filtered by %q", dimension)
		}
	}
	return nil
}

// Period counts clicks of a time. Clicks of device Bot are bots, all others are people.
type Period struct{ People, Bots int64 }

// Report holds the counts of a query. Its names count people.
type Report struct {
	Series   []Period // Series[i] is the time from Bounds[i] to Bounds[i+1]
	Previous Period
	Names    map[Dimension][]NameCount // the most frequent ones, ties ordered by name; "" means unknown
	Links    []LinkCount               // those with the most clicks, including bots; ties ordered by ID
}

// ReportDetail is the first UTC day from which a store knows more than counts of days by one dimension; the zero time stands for
// all clicks.
type ReportDetail struct {
	// Hours is the first day whose clicks are known by the quarter of an hour. Earlier ones are counted as if at 00:00 UTC.
	Hours time.Time
	// Filters is the first day whose clicks are known with all dimensions together. Earlier ones do not match any filter.
	Filters time.Time
}

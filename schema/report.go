package schema

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// NameCount counts the clicks with a name.
type NameCount struct {
	Name  string
	Total int64
}

// LinkCount counts the clicks of a link.
type LinkCount struct {
	LinkID int64
	Total  int64
}

// ReportStore reports the clicks that a ClickStore has counted.
type ReportStore interface {
	// Report reports the clicks that a query selects. All counts are of one moment. CodeInternal for a query that Check
	// refuses. It returns approximate counts if the query needs more detail than ReportDetail says.
	Report(ctx context.Context, query ReportQuery) (Report, error)
	// ClickSeries returns the clicks of each of these links of an account, of all kinds together, one number per
	// period. bounds divides the periods, like a query's. Links without clicks are left out.
	ClickSeries(ctx context.Context, accountID int64, linkIDs []int64, bounds []time.Time) (map[int64][]int64, error)
	// ReportDetail returns the detail that the store keeps of old clicks.
	ReportDetail(ctx context.Context) (ReportDetail, error)
}

// ReportResolution divides every boundary of a report's periods: the offsets of all time zones are multiples of it.
const ReportResolution = 15 * time.Minute

const utcDay = 24 * time.Hour

// MaxReportLinks bounds the links that a query names.
const MaxReportLinks = 5000

// ReportQuery selects clicks and says how to count them.
type ReportQuery struct {
	// AccountID is the owner of the links.
	AccountID int64
	// Links are links of the account whose clicks are counted, in any order, at most MaxReportLinks; nil for all of them.
	Links []int64
	// Bounds are the beginnings of the periods of the series, ascending, and the end of the last one. Each is a multiple
	// of ReportResolution. A report whose bounds begin UTC days, and which has no filter, reads least.
	Bounds []time.Time
	// Previous is the beginning of the time before Bounds[0] to compare with.
	Previous time.Time
	// Filter leaves the clicks that have these names.
	Filter map[Dimension]string
	// Limit is how many names of each dimension are returned, and how many links.
	Limit int
	// TopLinks says whether links are returned.
	TopLinks bool
	// NoNames leaves out names, which take most of the time of a report.
	NoNames bool
	// Visitors says whether visitors are counted. A store cannot count the visitors of filtered clicks.
	Visitors bool
	// Yields lets a store interrupt the report for other reports.
	Yields bool
}

// End returns the end of the last period.
func (q *ReportQuery) End() time.Time { return q.Bounds[len(q.Bounds)-1] }

// OfUTCDays reports whether all bounds begin UTC days.
func (q *ReportQuery) OfUTCDays() bool {
	return !slices.ContainsFunc(append([]time.Time{q.Previous}, q.Bounds...),
		func(at time.Time) bool { return !at.Truncate(utcDay).Equal(at) })
}

// Count adds clicks to the period of a time. Clicks before Bounds[0] belong to the time before the periods.
func (q *ReportQuery) Count(r *Report, at time.Time, clicks Period) {
	sum := &r.Previous
	if i := q.Period(at); i >= 0 {
		sum = &r.Series[i]
	}
	sum.Add(clicks)
}

// CountSeries adds clicks of a link to the period of a time that is not before Bounds[0].
func (q *ReportQuery) CountSeries(series map[int64][]int64, link int64, at time.Time, clicks int64) {
	if series[link] == nil {
		series[link] = make([]int64, len(q.Bounds)-1)
	}
	series[link][q.Period(at)] += clicks
}

// Period returns the number of the period of a time before End, -1 for the time before.
func (q *ReportQuery) Period(at time.Time) int {
	i, begins := slices.BinarySearchFunc(q.Bounds, at, time.Time.Compare)
	if !begins {
		i--
	}
	return i
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

// Period counts clicks of a time. Clicks of device Bot are bots, all others are people. Imported clicks were counted by
// other services, which do not say whose they are: see HistoryStore.
type Period struct{ People, Bots, Imported int64 }

// Add adds the clicks of another time.
func (p *Period) Add(more Period) {
	p.People += more.People
	p.Bots += more.Bots
	p.Imported += more.Imported
}

// Total returns the number of clicks.
func (p Period) Total() int64 { return p.People + p.Bots + p.Imported }

// Report holds the counts of a query. Its names count people.
type Report struct {
	Series   []Period // Series[i] is the time from Bounds[i] to Bounds[i+1]
	Previous Period
	Names    map[Dimension][]NameCount // the most frequent ones, ties ordered by name; "" means unknown, or the link's URL
	Links    []LinkCount               // the links with the most clicks of all kinds; ties ordered by ID
	Sources  []NameCount               // of all imported clicks, most clicks first, ties ordered by name
	Visitors *Visitors                 // nil unless the query asks for them and has no filter
}

// Visitors counts visitors by their hashes (Click.Visitor), which are different each UTC day: a visitor of several days
// counts once per day. Clicks without a hash are of no visitor. Below MaxExactVisitors of a link, or of an account, on
// a UTC day the counts are exact; above, they are estimates within 2 %, also when visitors come again.
type Visitors struct {
	Series   []int64 // of each period
	Total    int64   // of all periods: less than the sum of periods that share a UTC day
	Previous int64
}

// MaxExactVisitors is how many visitors of a link or an account and UTC day are counted exactly, at least.
const MaxExactVisitors = 1024

// CountsVisitors reports whether the query is answered with visitors.
func (q *ReportQuery) CountsVisitors() bool { return q.Visitors && len(q.Filter) == 0 }

// CountsImported reports whether the query selects imported clicks, by the names that they have.
func (q *ReportQuery) CountsImported() bool {
	for by, name := range q.Filter {
		if name != importedNames[by] {
			return false
		}
	}
	return true
}

// NewReport returns an empty report for a query.
func NewReport(q ReportQuery) Report {
	r := Report{Series: make([]Period, len(q.Bounds)-1), Names: map[Dimension][]NameCount{}}
	if q.CountsVisitors() {
		r.Visitors = &Visitors{Series: make([]int64, len(r.Series))}
	}
	return r
}

// MostFrequent returns the n names with the most clicks, ties ordered by name. Names without clicks are left out.
func MostFrequent(clicks map[string]int64, n int) (top []NameCount) {
	for name, total := range clicks {
		if total > 0 {
			top = append(top, NameCount{Name: name, Total: total})
		}
	}
	slices.SortFunc(top, func(a, b NameCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	return top[:min(n, len(top))]
}

// ReportDetail is the detail that a store keeps of old clicks.
type ReportDetail struct {
	// Hours is the first UTC day whose clicks are known by the quarter of an hour, the zero time for all clicks. Earlier
	// ones are counted as if at 00:00 UTC.
	Hours time.Time
}

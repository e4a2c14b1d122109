// Package clickreport says which clicks a report counts: it reads the range, the time zone and the filters that a
// person has asked for, as the API and the dashboard take them, and makes the query for the click store.
package clickreport

import (
	"context"
	"time"
	_ "time/tzdata" // for machines without a time zone database

	"linkstream/schema"
)

// Interval is the length of a report's periods.
type Interval string

// The intervals.
const (
	Day  Interval = "day"
	Hour Interval = "hour"
)

// Limits of reports.
const (
	DefaultDays = 30
	MaxDays     = 3660 // of a report by day
	MaxHourDays = 31   // of a report by hour
	DefaultTop  = 10
	MaxTop      = 1000
)

// Request is a valid report.
type Request struct {
	From, To time.Time // the midnights that begin the first and the last day, in Zone
	Zone     *time.Location
	Interval Interval
	Limit    int // of names per dimension
	Filter   map[schema.Dimension]string
}

// Point is a period of a report with its clicks.
type Point struct {
	At time.Time // its beginning, in the zone of the request
	Count
}

// Count counts clicks and visitors.
type Count struct {
	schema.Period
	Visitors *int64 // nil if they are unknown
}

// newCount returns a count. Clicks of people without any visitor are from before visitors were counted, or of edges
// without a key.
func newCount(clicks schema.Period, visitors int64) Count {
	if visitors == 0 && clicks.People > 0 {
		return Count{Period: clicks}
	}
	return Count{clicks, &visitors}
}

// Result is the content of a report. Its counts by name are of people.
type Result struct {
	Series           []Point // without gaps
	Totals, Previous Count
	Names            map[schema.Dimension][]schema.NameCount
	Links            []schema.LinkCount // with the most clicks, including bots
}

// Bounds returns the beginnings of the periods and the end of the last one, in the zone of the request.
func (r Request) Bounds() (bounds []time.Time) {
	end := AddDays(r.To, 1)
	for at, n := r.From, 0; at.Before(end); n++ {
		if len(bounds) == 0 || at.After(bounds[len(bounds)-1]) { // a zone that crosses the date line has no such day
			bounds = append(bounds, at)
		}
		if r.Interval == Hour {
			// Hours are hours of the clock: in a zone that changes its clocks by half an hour, one hour is shorter.
			at = at.Add(time.Hour - time.Duration(at.Minute())*time.Minute)
		} else {
			at = AddDays(r.From, n+1)
		}
	}
	return append(bounds, end)
}

// Previous returns the beginning of the time of as many days before the report.
func (r Request) Previous() time.Time {
	return AddDays(r.From, -r.days())
}

// days returns the number of days.
func (r Request) days() (n int) {
	from := time.Date(r.From.Year(), r.From.Month(), r.From.Day(), 0, 0, 0, 0, time.UTC)
	to := time.Date(r.To.Year(), r.To.Month(), r.To.Day(), 0, 0, 0, 0, time.UTC)
	return int(to.Sub(from)/(24*time.Hour)) + 1
}

// DayOf returns the beginning of the day of a time, in the zone of the time.
func DayOf(at time.Time) time.Time { return startOfDay(at.Year(), at.Month(), at.Day(), at.Location()) }

// AddDays returns the beginning of the day that is n days after the day of a time, in the zone of the time.
func AddDays(midnight time.Time, n int) time.Time {
	noon := time.Date(midnight.Year(), midnight.Month(), midnight.Day()+n, 12, 0, 0, 0, midnight.Location())
	return startOfDay(noon.Year(), noon.Month(), noon.Day(), midnight.Location())
}

// startOfDay returns the first moment of a day. In zones that set the clock at midnight, a day may begin at 01:00.
func startOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	if at.Day() != day { // there is no 00:00, and Date has used the offset before it
		_, end := at.ZoneBounds()
		return end.In(zone)
	}
	return at
}

// Comparison is the time that a report is compared with.
type Comparison struct {
	From, End time.Time
	Clicks    schema.Period
	Part      bool // the report's last day is not over, so that the comparison ends at the same time of day
}

// Compare counts the clicks of a link, or with links the clicks of an account, in the days before the report, or in the
// same days of the year before. If the report's last day is not over at now, the same part of the days is compared. Old
// clicks whose stored time is a UTC day are compared by UTC day.
func (r Request) Compare(ctx context.Context, store schema.ReportStore, account int64, links []int64, year bool,
	now time.Time) (c Comparison, err error) {
	back := func(at time.Time) time.Time { return AddDays(at, -r.days()).Add(at.Sub(DayOf(at))) }
	if year {
		back = func(at time.Time) time.Time { return at.AddDate(-1, 0, 0) }
	}
	end := AddDays(r.To, 1)
	if c.Part = now.Before(end) && now.After(r.From); c.Part {
		end = now.In(r.Zone)
	}
	c.From, c.End = back(r.From), back(end)
	detail, err := store.ReportDetail(ctx)
	if err != nil {
		return c, err
	}
	q := r.query(account, links)
	q.Bounds = []time.Time{Bound(c.From), Bound(c.End)}
	if c.From.Before(detail.Hours) {
		const day = 24 * time.Hour
		q.Bounds = []time.Time{c.From.UTC().Truncate(day), c.End.UTC().Add(day - 1).Truncate(day)}
	}
	if !q.Bounds[1].After(q.Bounds[0]) { // the report has just begun
		return c, nil
	}
	q.Previous, q.NoNames = q.Bounds[0].AddDate(0, 0, -1), true
	got, err := store.Report(ctx, q)
	if err == nil {
		c.Clicks = got.Series[0]
	}
	return c, err
}

// Bound returns a time as a query of the store has it: in UTC, and divided by the store's resolution, which the offsets
// of zones were not before they were standardized.
func Bound(at time.Time) time.Time { return at.UTC().Truncate(schema.ReportResolution) }

// query returns the query of the store.
func (r Request) query(account int64, links []int64) schema.ReportQuery {
	q := schema.ReportQuery{AccountID: account, Links: links, Previous: Bound(r.Previous()), Filter: r.Filter,
		Limit: r.Limit}
	for _, at := range r.Bounds() {
		q.Bounds = append(q.Bounds, Bound(at))
	}
	return q
}

// OfLink reports the clicks of a link.
func (r Request) OfLink(ctx context.Context, store schema.ReportStore, link schema.Link) (Result, error) {
	q := r.query(link.AccountID, []int64{link.ID})
	q.Visitors = true
	return r.read(ctx, store, q)
}

// OfAccount reports the clicks of all links of an account, or only of links if links is not nil.
func (r Request) OfAccount(ctx context.Context, store schema.ReportStore, account int64,
	links []int64) (Result, error) {
	q := r.query(account, links)
	q.TopLinks, q.Visitors = true, true
	return r.read(ctx, store, q)
}

func (r Request) read(ctx context.Context, store schema.ReportStore, q schema.ReportQuery) (result Result, err error) {
	got, err := store.Report(ctx, q)
	if err != nil {
		return result, err
	}
	result = Result{Previous: Count{Period: got.Previous}, Names: got.Names, Links: got.Links,
		Series: make([]Point, len(got.Series))}
	known := got.Visitors != nil
	for i, at := range r.Bounds()[:len(got.Series)] {
		point := Point{at, Count{Period: got.Series[i]}}
		if got.Visitors != nil {
			point.Count = newCount(got.Series[i], got.Visitors.Series[i])
		}
		known = known && point.Visitors != nil
		result.Series[i] = point
		result.Totals.Add(point.Period)
	}
	if got.Visitors != nil {
		result.Previous = newCount(got.Previous, got.Visitors.Previous)
	}
	if known { // a sum with an unknown part is unknown
		result.Totals.Visitors = &got.Visitors.Total
	}
	return result, nil
}

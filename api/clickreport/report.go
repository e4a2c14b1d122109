// Package clickreport says which clicks a report counts: it reads the range, the time zone and the filters that a
// person has asked for, as the API and the dashboard take them, and makes the query for the click store.
package clickreport

import (
	"context"
	"slices"
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
	From, To time.Time // the first and the last day, as DateOf returns them
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
	Links            []schema.LinkCount // with the most clicks, including bots and imported ones
	Sources          []schema.NameCount // of imported clicks, the largest first
}

// Bounds returns the beginnings of the periods and the end of the last one, in the zone of the request. A day that the
// zone has skipped, to cross the date line, has no period: without another day there is only the end.
func (r Request) Bounds() (bounds []time.Time) {
	at := StartOf(r.From, r.Zone)
	for day := r.From; !day.After(r.To); {
		day = day.AddDate(0, 0, 1)
		for end := StartOf(day, r.Zone); at.Before(end); {
			if bounds = append(bounds, at); r.Interval != Hour {
				at = end
				continue
			}
			// Hours are hours of the clock: in a zone that changes its clocks by half an hour, one hour is shorter.
			if at = at.Add(time.Hour - time.Duration(at.Minute())*time.Minute); at.After(end) {
				at = end
			}
		}
	}
	return append(bounds, at)
}

// Previous returns the beginning of the time of as many days before the report.
func (r Request) Previous() time.Time { return StartOf(r.From.AddDate(0, 0, -r.Days()), r.Zone) }

// Days returns the number of days.
func (r Request) Days() (n int) { return int(r.To.Sub(r.From)/(24*time.Hour)) + 1 }

// DateOf returns the day of a time in its zone, as midnight in UTC.
func DateOf(at time.Time) time.Time {
	year, month, day := at.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// StartOf returns the moment from which on the date in a zone is not before a day, which is a midnight in UTC. That is
// midnight, except on days on which the zone sets its clocks over midnight: forward, a day begins at 01:00, or is
// skipped; back, midnight comes twice, and the first one begins the day unless the time between is of the day before.
func StartOf(day time.Time, zone *time.Location) time.Time {
	for at := day.Add(24 * time.Hour).In(zone); ; { // later than the start in every zone
		_, offset := at.Zone()
		changed, _ := at.ZoneBounds()
		midnight := day.Add(-time.Duration(offset) * time.Second)
		if changed.IsZero() || midnight.After(changed) {
			return midnight.In(zone)
		}
		at = changed.Add(-1) // with the offset before
		if DateOf(at).Before(day) {
			return changed.In(zone)
		}
	}
}

// AddDays returns the beginning of the day that is n days after the day of a time, in the zone of the time.
func AddDays(at time.Time, n int) time.Time {
	return StartOf(DateOf(at).AddDate(0, 0, n), at.Location())
}

// Comparison is the time that a report is compared with.
type Comparison struct {
	From, End time.Time
	Clicks    schema.Period
	Part      bool    // the report's last day is not over, so that the comparison ends at the same time of day
	Series    []Count // of the report's periods that had begun; nil if several reports are compared, or it is not known
	Visitors  *int64  // nil likewise
}

// Compare counts the clicks of a link, or with links the clicks of an account, with the filter of the reports, in the
// days before each report, or in the same days of the year before. If a report's last day is not over at now, the same
// part of the days is compared. Old clicks whose stored time is a UTC day are compared by UTC day. A single report is
// compared by its periods, too.
func Compare(ctx context.Context, store schema.ReportStore, account int64, links []int64, year bool, now time.Time,
	reports ...Request) ([]Comparison, error) {
	detail, err := store.ReportDetail(ctx)
	if err != nil {
		return nil, err
	}
	compared, ranges := make([]Comparison, len(reports)), make([][2]time.Time, len(reports))
	q := reports[0].query(account, links)
	q.Bounds, q.NoNames, q.Limit = nil, true, 1
	for i, r := range reports {
		c := r.comparison(year, now)
		compared[i], ranges[i] = c, [2]time.Time{Bound(c.From), Bound(c.End)}
		if c.From.Before(detail.Hours) {
			const day = 24 * time.Hour
			ranges[i] = [2]time.Time{c.From.UTC().Truncate(day), c.End.UTC().Add(day - 1).Truncate(day)}
		}
		q.Bounds = append(q.Bounds, ranges[i][:]...)
	}
	var steps []time.Time
	if len(reports) == 1 {
		steps = reports[0].steps(ranges[0], year, compared[0].From.Before(detail.Hours))
		q.Bounds, q.Visitors = append(q.Bounds, steps...), true
	}
	slices.SortFunc(q.Bounds, time.Time.Compare)
	if q.Bounds = slices.Compact(q.Bounds); len(q.Bounds) < 2 { // the report has just begun
		return compared, nil
	}
	q.Previous = q.Bounds[0].AddDate(0, 0, -1)
	got, err := store.Report(ctx, q)
	if err != nil {
		return nil, err
	}
	for i := range compared {
		for n, clicks := range got.Series {
			if at := q.Bounds[n]; !at.Before(ranges[i][0]) && at.Before(ranges[i][1]) {
				compared[i].Clicks.Add(clicks)
			}
		}
	}
	if len(reports) == 1 {
		compared[0].count(q, got, steps)
	}
	return compared, nil
}

// steps returns the bounds of the report's periods in the time that it is compared with: of the same days and hours,
// but none after the end. They are UTC days if byDay; hours are not known then.
func (r Request) steps(of [2]time.Time, year, byDay bool) []time.Time {
	if byDay && r.Interval == Hour {
		return nil
	}
	steps := r.Bounds()
	for i, at := range steps {
		day := DateOf(at)
		at = r.back(day, year).Add(at.Sub(StartOf(day, r.Zone)))
		if byDay {
			at = DateOf(at)
		}
		least := of[0]
		if i > 0 {
			least = steps[i-1] // a clock that is changed must not go back
		}
		switch steps[i] = Bound(at); {
		case i == len(steps)-1 || steps[i].After(of[1]):
			steps[i] = of[1]
		case i == 0 || steps[i].Before(least):
			steps[i] = least
		}
	}
	return steps
}

// count sets the numbers of periods. Visitors are counted once in the whole query.
func (c *Comparison) count(q schema.ReportQuery, got schema.Report, steps []time.Time) {
	known := got.Visitors != nil
	for i := 1; i < len(steps) && steps[i-1].Before(q.End()); i++ {
		var sum Count
		visitors := int64(0)
		for n := q.Period(steps[i-1]); q.Bounds[n].Before(steps[i]); n++ {
			sum.Add(got.Series[n])
			if got.Visitors != nil {
				visitors += got.Visitors.Series[n]
			}
		}
		if got.Visitors != nil {
			sum = newCount(sum.Period, visitors)
		}
		known = known && sum.Visitors != nil
		c.Series = append(c.Series, sum)
	}
	if known && len(c.Series) > 0 {
		c.Visitors = &got.Visitors.Total
	}
}

// back returns the beginning of a day's counterpart in the time that the report is compared with.
func (r Request) back(day time.Time, year bool) time.Time {
	if year {
		return StartOf(day.AddDate(-1, 0, 0), r.Zone)
	}
	return StartOf(day.AddDate(0, 0, -r.Days()), r.Zone)
}

// comparison returns the time that the report is compared with at now.
func (r Request) comparison(year bool, now time.Time) (c Comparison) {
	after := r.To.AddDate(0, 0, 1)
	c.From, c.End = r.back(r.From, year), r.back(after, year)
	if c.Part = now.Before(StartOf(after, r.Zone)) && now.After(StartOf(r.From, r.Zone)); c.Part {
		now = now.In(r.Zone)
		c.End = r.back(DateOf(now), year).Add(now.Sub(AddDays(now, 0)))
	}
	return c
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
	if !q.Previous.Before(q.Bounds[0]) {
		q.Previous = q.Bounds[0].AddDate(0, 0, -1) // there are no days before, which is not a query
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
	if len(q.Bounds) == 1 { // the zone has skipped the days
		before, err := Compare(ctx, store, q.AccountID, q.Links, false, time.Time{}, r)
		if err != nil {
			return result, err
		}
		return Result{Totals: newCount(schema.Period{}, 0), Previous: newCount(before[0].Clicks, 0)}, nil
	}
	got, err := store.Report(ctx, q)
	if err != nil {
		return result, err
	}
	result = Result{Previous: Count{Period: got.Previous}, Names: got.Names, Links: got.Links,
		Sources: got.Sources,
		Series:  make([]Point, len(got.Series))}
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
	if !q.Previous.Equal(Bound(r.Previous())) { // the zone has skipped the days before
		result.Previous = newCount(schema.Period{}, 0)
	}
	if known { // a sum with an unknown part is unknown
		result.Totals.Visitors = &got.Visitors.Total
	}
	return result, nil
}

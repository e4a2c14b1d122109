package clickreport

import (
	"context"
	"time"

	"linkstream/schema"
)

// Week counts people by the hours of a week: Week[0] from Monday 00:00 to 01:00, in the zone of the report.
type Week [7 * hoursPerDay]int64

const hoursPerDay = 24

// At returns the weekday of an hour of a week, 1 for Monday, and the hour of that day.
func (Week) At(i int) (weekday, hour int) { return 1 + i/hoursPerDay, i % hoursPerDay }

// hourOf returns the hour of the week of a time in its zone.
func hourOf(at time.Time) int {
	return (int(at.Weekday())+6)%7*hoursPerDay + at.Hour()
}

// Week counts the people of the report's days, on links of an account, or on all of them if links is nil. It is nil if
// the store keeps less detail than hours of the first day. It reads the clicks again, and may have some that were
// counted since the report was read.
func (r Request) Week(
	ctx context.Context, store schema.ReportStore, account int64, links []int64,
) (*Week, error) {
	detail, err := store.ReportDetail(ctx)
	if err != nil || StartOf(r.From, r.Zone).Before(detail.Hours) {
		return nil, err
	}
	week := new(Week)
	r.Interval = Hour
	q := r.query(account, links)
	if len(q.Bounds) == 1 { // the zone has skipped the days
		return week, nil
	}
	q.Previous = q.Bounds[0].Add(-schema.ReportResolution) // nothing is compared
	q.NoNames, q.Limit = true, 1
	got, err := store.Report(ctx, q)
	if err != nil {
		return nil, err
	}
	for i, at := range r.Bounds()[:len(got.Series)] {
		week[hourOf(at)] += got.Series[i].People
	}
	return week, nil
}

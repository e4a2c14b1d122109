package dashboard

import (
	"context"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// period is the time range of a report.
type period struct {
	Key   string // in query strings
	Label string
	days  int // 0: all
}

var periods = []period{{"7", "7 days", 7}, {"30", "30 days", 30}, {"90", "90 days", 90}, {"all", "All", 0}}

// defaultPeriod is the period without a query parameter.
const defaultPeriod = "30"

// findPeriod returns the period with that key, or the default.
func findPeriod(key string) (found period) {
	for _, p := range periods {
		if p.Key == key || p.Key == defaultPeriod && found.Key == "" {
			found = p
		}
	}
	return found
}

// since returns the first day of the period, or the zero time for "all".
func (p period) since(now time.Time) time.Time {
	if p.days == 0 {
		return time.Time{}
	}
	return clickreport.AddDays(now, 1-p.days)
}

// fileName returns the period's part of a file name.
func (p period) fileName() string {
	if p.days == 0 {
		return p.Key
	}
	return p.Key + "-days"
}

// dayClicks is the clicks of a day, or of another unit of a chart.
type dayClicks struct {
	Date string // 2006-01-02
	schema.Period
}

// readDays reads a report by day from first, in its zone, to today, and for the time before that as the query's Previous says. The clocks
// of edges differ, so a day of clicks is added after today, and before first if that day is open, as for "all".
func readDays(ctx context.Context, reports schema.ReportStore, q schema.ReportQuery, first, now time.Time, open bool) ([]dayClicks, schema.Report, error) {
	if open {
		first = clickreport.AddDays(first, -1)
	}
	var names []string
	end := clickreport.AddDays(now.In(first.Location()), 2)
	for n, at := 0, first; !at.After(end); n, at = n+1, clickreport.AddDays(first, n+1) {
		bound := clickreport.Bound(at)
		if n > 0 && !bound.After(q.Bounds[len(q.Bounds)-1]) {
			continue // a zone that crosses the date line has no such day
		}
		q.Bounds, names = append(q.Bounds, bound), append(names, at.Format(time.DateOnly))
	}
	if q.Previous.IsZero() {
		q.Previous = clickreport.Bound(clickreport.AddDays(first, -1))
	}
	got, err := reports.Report(ctx, q)
	if err != nil {
		return nil, got, err
	}
	days := make([]dayClicks, len(got.Series))
	for i, clicks := range got.Series {
		days[i] = dayClicks{names[i], clicks}
	}
	if days[len(days)-1].Total() == 0 {
		days = days[:len(days)-1]
	}
	if open && days[0].Total() == 0 {
		days = days[1:]
	}
	return days, got, nil
}

// minChartDays is the smallest number of days in a chart. A new link would otherwise have one bar, as wide as the page.
const minChartDays = 14

// atLeast adds days without clicks before the first one, so that there are at least n.
func atLeast(n int, days []dayClicks) []dayClicks {
	if len(days) == 0 || len(days) >= n {
		return days
	}
	first, err := time.Parse(time.DateOnly, days[0].Date)
	if err != nil {
		return days
	}
	var all []dayClicks
	for i := len(days); i < n; i++ {
		all = append(all, dayClicks{Date: first.AddDate(0, 0, i-n).Format(time.DateOnly)})
	}
	return append(all, days...)
}

func sumOf(days []dayClicks) (s schema.Period) {
	for _, day := range days {
		s.Add(day.Period)
	}
	return s
}

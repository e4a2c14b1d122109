package dashboard

import (
	"context"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// dayClicks is the clicks of a day, or of another unit of a chart.
type dayClicks struct {
	Date string // 2006-01-02
	clickreport.Count
}

// readDays reads a report by day from first, in its zone, to today, and for the time before that as the query's Previous says. The clocks
// of edges differ, so a day of clicks is added after today.
func readDays(ctx context.Context, reports schema.ReportStore, q schema.ReportQuery, first, now time.Time) ([]dayClicks, schema.Report, error) {
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
		days[i] = dayClicks{names[i], clickreport.Count{Period: clicks}}
	}
	if days[len(days)-1].Total() == 0 {
		days = days[:len(days)-1]
	}
	return days, got, nil
}

func sumOf(days []dayClicks) (s schema.Period) {
	for _, day := range days {
		s.Add(day.Period)
	}
	return s
}

package dashboard

import (
	"time"

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

// since returns the first UTC day of the period, or the zero time for "all".
func (p period) since(now time.Time) time.Time {
	if p.days == 0 {
		return time.Time{}
	}
	return today(now).AddDate(0, 0, 1-p.days)
}

// fileName returns the period's part of a file name.
func (p period) fileName() string {
	if p.days == 0 {
		return p.Key
	}
	return p.Key + "-days"
}

func today(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// everyDay returns every day from first to last and fills in days without clicks. The range grows to include all days with
// clicks, because the clocks of edges differ and the days must add up to the total.
func everyDay(days []schema.DayReport, first, last time.Time) (all []schema.DayReport) {
	if len(days) > 0 {
		if day, err := time.Parse(time.DateOnly, days[0].Date); err == nil && (first.IsZero() || day.Before(first)) {
			first = day
		}
		if day, err := time.Parse(time.DateOnly, days[len(days)-1].Date); err == nil && day.After(last) {
			last = day
		}
	}
	for day := today(first); !day.After(last); day = day.AddDate(0, 0, 1) {
		at := schema.DayReport{Date: day.Format(time.DateOnly)}
		if len(days) > 0 && days[0].Date == at.Date {
			at, days = days[0], days[1:]
		}
		all = append(all, at)
	}
	return all
}

// minChartDays is the smallest number of days in a chart. A new link would otherwise have one bar, as wide as the page.
const minChartDays = 14

// atLeast adds days without clicks before the first one, so that there are at least n.
func atLeast(n int, days []schema.DayReport) []schema.DayReport {
	if len(days) == 0 || len(days) >= n {
		return days
	}
	first, err := time.Parse(time.DateOnly, days[0].Date)
	if err != nil {
		return days
	}
	return everyDay(days, first.AddDate(0, 0, len(days)-n), first)
}

// sum is the clicks of several days.
type sum struct{ People, Bots int64 }

func (s sum) Total() int64 { return s.People + s.Bots }

func sumOf(days []schema.DayReport) (s sum) {
	for _, day := range days {
		s.People += day.People
		s.Bots += day.Bots
	}
	return s
}

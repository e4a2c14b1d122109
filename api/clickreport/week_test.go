package clickreport_test

import (
	"context"
	"testing"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestWeek counts a click in each quarter of an hour.
func TestWeek(t *testing.T) {
	const perHour = int64(time.Hour / schema.ReportResolution)
	at := func(weekday, hour int) int { return (weekday-1)*24 + hour }
	for _, c := range []struct {
		name, from, to, zone string
		want                 map[int]int64 // clicks of some hours; the others have every
		every                int64
	}{
		{"two weeks", "2026-11-02", "2026-11-15", "UTC", nil, 2 * perHour},
		{"a week in a zone of quarters", "2026-11-02", "2026-11-08", "Asia/Kathmandu", nil, perHour},
		{"a Monday", "2026-11-02", "2026-11-02", "UTC", map[int]int64{at(1, 0): perHour, at(1, 23): perHour}, 0},
		{"a Sunday", "2026-11-08", "2026-11-08", "America/New_York", map[int]int64{at(7, 0): perHour, at(7, 23): perHour}, 0},
		{"a week with an hour twice", "2026-10-19", "2026-10-25", "Europe/Berlin", map[int]int64{at(7, 2): 2 * perHour},
			perHour},
		{"a week without an hour", "2026-03-23", "2026-03-29", "Europe/Berlin", map[int]int64{at(7, 2): 0}, perHour},
		{"a week with half an hour twice", "2026-03-30", "2026-04-05", "Australia/Lord_Howe",
			map[int]int64{at(7, 1): perHour + perHour/2}, perHour},
		{"a day that the zone has skipped", "2011-12-30", "2011-12-30", "Pacific/Apia", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			fields := map[string]string{"from": c.from, "to": c.to, "tz": c.zone}
			r, problems := clickreport.Parse(func(field string) (string, bool) {
				value, ok := fields[field]
				return value, ok
			}, time.Now())
			testkit.Equal(t, "problems", len(problems), 0)
			week, err := r.Week(t.Context(), quarters{}, 1, nil)
			testkit.Must(t, err)
			for i, people := range week {
				want, differs := c.want[i]
				weekday, hour := week.At(i)
				if !differs && c.every == 0 && weekday == firstWeekday(c.want) {
					want = perHour // of a single day
				} else if !differs {
					want = c.every
				}
				if people != want {
					t.Errorf("weekday %d, hour %d: %d people, want %d", weekday, hour, people, want)
				}
			}
		})
	}
}

// firstWeekday returns the weekday of the first of some hours; 0 without any.
func firstWeekday(hours map[int]int64) (weekday int) {
	for i := range hours {
		weekday, _ = clickreport.Week{}.At(i)
	}
	return weekday
}

// keepsHours is a store that keeps hours since a day.
type keepsHours struct {
	quarters
	since time.Time
}

func (k keepsHours) ReportDetail(context.Context) (schema.ReportDetail, error) {
	return schema.ReportDetail{Hours: k.since}, nil
}

func TestWeekOfOldClicks(t *testing.T) {
	store := keepsHours{since: time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC)}
	for from, known := range map[int]bool{1: false, 2: true, 3: true} {
		r := clickreport.Request{From: time.Date(2026, time.November, from, 0, 0, 0, 0, time.UTC),
			To:   time.Date(2026, time.November, 8, 0, 0, 0, 0, time.UTC),
			Zone: time.UTC, Interval: clickreport.Day, Limit: 1}
		week, err := r.Week(t.Context(), store, 1, nil)
		testkit.Must(t, err)
		testkit.Equal(t, "known", week != nil, known)
	}
}

package clickreport_test

import (
	"context"
	_ "embed"
	"strings"
	"testing"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// zones names each time zone of the IANA database once; other names of a zone are left out.
//
//go:embed testdata/zones.txt
var zones string

// changes returns the moments from 1990 to 2039 at which a zone changes its offset.
func changes(zone *time.Location) (all []time.Time) {
	at := time.Date(1990, time.February, 1, 0, 0, 0, 0, time.UTC).In(zone)
	for {
		_, next := at.ZoneBounds()
		if next.IsZero() || next.Year() > 2039 {
			return all
		}
		_, before := at.Zone()
		if _, after := next.Zone(); after != before {
			all = append(all, next)
		}
		at = next
	}
}

// quarters is a store with one click of a person in each quarter of an hour.
type quarters struct{ schema.ReportStore }

func (quarters) Report(_ context.Context, q schema.ReportQuery) (schema.Report, error) {
	if err := q.Check(); err != nil {
		return schema.Report{}, err
	}
	report := schema.NewReport(q)
	for i := range report.Series {
		report.Series[i].People = int64(q.Bounds[i+1].Sub(q.Bounds[i]) / schema.ReportResolution)
	}
	report.Previous.People = int64(q.Bounds[0].Sub(q.Previous) / schema.ReportResolution)
	return report, nil
}

func (quarters) ReportDetail(context.Context) (schema.ReportDetail, error) {
	return schema.ReportDetail{}, nil
}

// TestDaysOfAllZones checks, around each change of each zone, that days begin where the day before ends, and that
// reports of these days have all their clicks once.
func TestDaysOfAllZones(t *testing.T) {
	type key struct {
		at            int64
		before, after int
	}
	seen := map[key]bool{} // zones share changes, around which their days are the same
	for name := range strings.Lines(zones) {
		zone, ok := clickreport.FindZone(strings.TrimSpace(name))
		if !ok {
			t.Errorf("%q is no zone", name)
			continue
		}
		for _, change := range changes(zone) {
			_, before := change.Add(-1).Zone()
			_, after := change.Zone()
			if same := (key{change.Unix(), before, after}); seen[same] {
				continue
			} else {
				seen[same] = true
			}
			first := clickreport.DateOf(change).AddDate(0, 0, -2)
			for n := range 5 {
				checkStart(t, first.AddDate(0, 0, n), zone)
			}
			checkReports(t, first, zone)
			if t.Failed() {
				t.Fatalf("%s around %s", zone, change.In(zone))
			}
		}
	}
}

// checkStart checks that a day begins when the date is not before it any more.
func checkStart(t *testing.T, day time.Time, zone *time.Location) {
	t.Helper()
	begin := clickreport.StartOf(day, zone)
	if before := begin.Add(-1); !clickreport.DateOf(before).Before(day) {
		t.Errorf("%s begins at %s, after %s", day.Format(time.DateOnly), begin, before)
	}
	for n := range 20 {
		if at := begin.Add(time.Duration(n) * schema.ReportResolution); clickreport.DateOf(at).Before(day) {
			t.Errorf("%s begins at %s, before %s", day.Format(time.DateOnly), begin, at)
		}
	}
	if bound := clickreport.Bound(begin); !bound.Equal(begin) {
		t.Errorf("%s is no bound of a report", begin)
	}
}

// checkReports compares the report of five days with reports of each day, by day and by hour.
func checkReports(t *testing.T, first time.Time, zone *time.Location) {
	t.Helper()
	last := first.AddDate(0, 0, 4)
	want := int64(clickreport.StartOf(last.AddDate(0, 0, 1), zone).Sub(clickreport.StartOf(first, zone)) /
		schema.ReportResolution)
	report := func(from, to time.Time, interval string) clickreport.Result {
		t.Helper()
		r := mustParse(t, "from="+from.Format(time.DateOnly), "to="+to.Format(time.DateOnly), "tz="+zone.String(),
			"interval="+interval)
		got, err := r.OfLink(t.Context(), quarters{}, schema.Link{ID: 1, AccountID: 1})
		testkit.Must(t, err)
		for i, p := range got.Series[min(1, len(got.Series)):] {
			if !p.At.After(got.Series[i].At) || interval == "day" && p.At.Format(time.DateOnly) ==
				got.Series[i].At.Format(time.DateOnly) {
				t.Errorf("%s follows %s", p.At, got.Series[i].At)
			}
		}
		for _, year := range []bool{false, true} {
			compared, err := clickreport.Compare(t.Context(), quarters{}, 1, []int64{1}, year, now, r)
			testkit.Must(t, err)
			sum := schema.Period{}
			for _, count := range compared[0].Series {
				sum.Add(count.Period)
			}
			if len(r.Bounds()) > 1 {
				testkit.Equal(t, "clicks of its periods", sum, compared[0].Clicks)
			}
			if !year && interval == "day" && !compared[0].Part {
				testkit.Equal(t, "clicks of the time before", compared[0].Clicks, got.Previous.Period)
			}
		}
		return got
	}
	sums := map[string]int64{"all, day": report(first, last, "day").Totals.People,
		"all, hour": report(first, last, "hour").Totals.People}
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		for _, interval := range []string{"day", "hour"} {
			sums["each, "+interval] += report(day, day, interval).Totals.People
		}
		sums["before each"] += report(day.AddDate(0, 0, 1), day.AddDate(0, 0, 1), "day").Previous.People
	}
	for name, sum := range sums {
		testkit.Equal(t, "clicks of "+name, sum, want)
	}
}

// TestDaysWithoutMidnight has days that begin otherwise than at their only midnight.
func TestDaysWithoutMidnight(t *testing.T) {
	for _, c := range []struct{ zone, day, begin string }{
		{"Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"}, // skipped
		{"Pacific/Apia", "2011-12-31", "2011-12-31T00:00:00+14:00"},
		{"Pacific/Fakaofo", "2011-12-30", "2011-12-31T00:00:00+13:00"},
		{"Pacific/Kwajalein", "1993-08-21", "1993-08-22T00:00:00+12:00"},
		{"Pacific/Kiritimati", "1994-12-31", "1995-01-01T00:00:00+14:00"},
		{"Pacific/Kanton", "1994-12-31", "1995-01-01T00:00:00+13:00"},
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T01:00:00-02:00"},
		{"America/Sao_Paulo", "2018-02-18", "2018-02-18T00:00:00-03:00"}, // the day before has 23:00 twice
		{"America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00"},
		{"America/Asuncion", "2023-10-01", "2023-10-01T01:00:00-03:00"},
		{"America/Havana", "2026-03-08", "2026-03-08T01:00:00-04:00"},
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00"}, // 00:00 comes twice
		{"Asia/Beirut", "2026-03-29", "2026-03-29T01:00:00+03:00"},
		{"Africa/Cairo", "2026-04-24", "2026-04-24T01:00:00+03:00"},
		{"Asia/Amman", "2021-10-29", "2021-10-29T00:00:00+03:00"}, // 00:00 comes twice, east of Greenwich
		{"Asia/Damascus", "2021-10-29", "2021-10-29T00:00:00+02:00"},
		{"Asia/Tehran", "2022-03-22", "2022-03-22T01:00:00+04:30"},
		{"Atlantic/Azores", "2026-03-29", "2026-03-29T01:00:00Z"},
		{"Atlantic/Azores", "2026-10-25", "2026-10-25T00:00:00Z"},
		{"America/St_Johns", "2006-10-29", "2006-10-29T00:00:00-03:30"}, // 00:00 to 00:01, then 23:01 of the day before
		{"America/Scoresbysund", "2023-03-26", "2023-03-26T01:00:00Z"},
	} {
		zone, _ := clickreport.FindZone(c.zone)
		day, err := time.Parse(time.DateOnly, c.day)
		testkit.Must(t, err)
		if got := clickreport.StartOf(day, zone).Format(time.RFC3339); got != c.begin {
			t.Errorf("%s in %s begins at %s, want %s", c.day, c.zone, got, c.begin)
		}
	}
}

package clickreport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// Periods are compared with earlier periods of the same days and hours, as far as the periods of the report have begun.
func TestComparedPeriods(t *testing.T) {
	at := func(text string) time.Time {
		t.Helper()
		parsed, err := time.Parse(time.RFC3339, text)
		testkit.Must(t, err)
		return parsed
	}
	for name, c := range map[string]struct {
		fields string
		year   bool
		now    string
		want   string // quarters of an hour
	}{
		"days":                  {"from=2026-11-02 to=2026-11-03", false, "2026-11-09T00:00:00Z", "[96 96]"},
		"until the same time":   {"from=2026-11-02 to=2026-11-03", false, "2026-11-03T06:00:00Z", "[96 24]"},
		"only what has begun":   {"from=2026-11-02 to=2026-11-04", false, "2026-11-03T06:00:00Z", "[96 24]"},
		"hours":                 {"from=2026-11-02 to=2026-11-02 interval=hour", false, "2026-11-02T03:30:00Z", "[4 4 4 2]"},
		"a day that was not":    {"from=2024-02-28 to=2024-03-01", true, "2026-11-09T00:00:00Z", "[96 0 96]"},
		"a day that is not now": {"from=2025-02-28 to=2025-03-01", true, "2026-11-09T00:00:00Z", "[192 96]"},
		"an hour that was not": {"from=2026-03-30 to=2026-03-30 interval=hour tz=Europe/Vienna", false,
			"2026-03-30T02:00:00Z", "[4 4 4 4]"},
		"an hour twice": {"from=2026-10-26 to=2026-10-26 interval=hour tz=Europe/Vienna", false,
			"2026-10-26T03:00:00Z", "[4 4 4 4]"},
		"hours of UTC days": {"from=2020-11-02 to=2020-11-02 interval=hour", false, "2026-11-09T00:00:00Z", "[]"},
		"UTC days":          {"from=2020-11-02 to=2020-11-03 tz=America/New_York", false, "2026-11-09T00:00:00Z", "[96 192]"},
		"UTC days, east":    {"from=2020-11-02 to=2020-11-03 tz=Asia/Tokyo", false, "2026-11-09T00:00:00Z", "[192 96]"},
	} {
		var fields []string
		for field := range strings.FieldsSeq(c.fields) {
			fields = append(fields, field)
		}
		got, err := clickreport.Compare(t.Context(), sinceYear{}, 1, []int64{1}, c.year, at(c.now), mustParse(t, fields...))
		testkit.Must(t, err)
		var series []int64
		for _, count := range got[0].Series {
			series = append(series, count.People)
		}
		testkit.Equal(t, name, fmt.Sprint(series), c.want)
	}
}

// sinceYear has a click in each quarter of an hour, and keeps hours since 2021.
type sinceYear struct{ quarters }

func (sinceYear) ReportDetail(context.Context) (schema.ReportDetail, error) {
	return schema.ReportDetail{Hours: time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)}, nil
}

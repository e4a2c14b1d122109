package dashboard_test

import (
	"strings"
	"testing"
	"time"

	"linkstream/api/dashboard"
	"linkstream/schema"
)

func utc(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at
}

func TestPeriod(t *testing.T) {
	for _, c := range []struct{ key, now, want string }{
		{"7", "2026-11-21T00:00:00Z", "2026-11-15"},
		{"7", "2026-11-20T23:59:59.999999999Z", "2026-11-14"},
		{"7", "2026-11-21T01:30:00+02:00", "2026-11-14"}, // still the 20th in UTC
		{"30", "2026-11-21T12:00:00Z", "2026-10-23"},
		{"90", "2026-03-01T12:00:00Z", "2025-12-02"},
		{"", "2026-11-21T12:00:00Z", "2026-10-23"},
		{"8' OR 1=1", "2026-11-21T12:00:00Z", "2026-10-23"},
	} {
		if got := dashboard.FindPeriod(c.key).Since(utc(c.now)); got.Format(time.DateOnly) != c.want ||
			!got.Equal(got.Truncate(24*time.Hour)) {
			t.Errorf("%q at %s: got %v, want %s", c.key, c.now, got, c.want)
		}
	}
	if got := dashboard.FindPeriod("all").Since(time.Now()); !got.IsZero() {
		t.Errorf("all: got %v", got)
	}
}

func TestEveryDay(t *testing.T) {
	day := func(date string, people int64) schema.DayReport { return schema.DayReport{Date: date, People: people} }
	for name, c := range map[string]struct {
		days        []schema.DayReport
		first, last string
		want        string // the first and the last day, and how many have clicks of how many
	}{
		"fills days without clicks": {[]schema.DayReport{day("2026-02-27", 1), day("2026-03-02", 2)},
			"2026-02-26", "2026-03-03", "2026-02-26 2026-03-03 2/6"},
		"begins with the first click if that is earlier": {[]schema.DayReport{day("2026-02-20", 1)},
			"2026-02-26", "2026-02-26", "2026-02-20 2026-02-26 1/7"},
		"ends with the last click if that is later": {[]schema.DayReport{day("2026-02-28", 1)},
			"2026-02-26", "2026-02-26", "2026-02-26 2026-02-28 1/3"},
		"takes the hours off": {nil, "2026-02-26T23:59:59Z", "2026-02-27", "2026-02-26 2026-02-27 0/2"},
	} {
		at := func(text string) time.Time {
			if !strings.Contains(text, "T") {
				text += "T00:00:00Z"
			}
			return utc(text)
		}
		got := dashboard.EveryDay(c.days, at(c.first), at(c.last))
		with := 0
		for _, d := range got {
			if d.People > 0 {
				with++
			}
		}
		if len(got) == 0 {
			t.Errorf("%s: got no days", name)
		} else if s := got[0].Date + " " + got[len(got)-1].Date + " " + dashboard.Number(int64(with)) + "/" +
			dashboard.Number(int64(len(got))); s != c.want {
			t.Errorf("%s: got %s, want %s", name, s, c.want)
		}
	}
	got := dashboard.EveryDay([]schema.DayReport{day("2026-02-27", 1)}, time.Time{}, utc("2026-02-28T00:00:00Z"))
	if len(got) != 2 {
		t.Errorf("without a first day: got %v, want to begin with the first click", got)
	}
}

func TestCSV(t *testing.T) {
	var out strings.Builder
	err := dashboard.WriteCSV(&out, []schema.DayReport{{Date: "2026-11-20"}, {Date: "2026-11-21", People: 1200, Bots: 34}})
	want := "date,people,bots,total\n2026-11-20,0,0,0\n2026-11-21,1200,34,1234\n"
	if err != nil || out.String() != want {
		t.Errorf("got %q, error %v; want %q", out.String(), err, want)
	}
}

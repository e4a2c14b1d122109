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
		{"7", "2026-11-21T01:30:00+02:00", "2026-11-15"}, // still the 20th in UTC
		{"30", "2026-11-21T12:00:00Z", "2026-10-23"},
		{"90", "2026-03-01T12:00:00Z", "2025-12-02"},
		{"", "2026-11-21T12:00:00Z", "2026-10-23"},
		{"8' OR 1=1", "2026-11-21T12:00:00Z", "2026-10-23"},
	} {
		if got := dashboard.FindPeriod(c.key).Since(utc(c.now)); got.Format("2006-01-02 15:04") != c.want+" 00:00" {
			t.Errorf("%q at %s: got %v, want %s", c.key, c.now, got, c.want)
		}
	}
	if got := dashboard.FindPeriod("all").Since(time.Now()); !got.IsZero() {
		t.Errorf("all: got %v", got)
	}
}

func TestCSV(t *testing.T) {
	var out strings.Builder
	err := dashboard.WriteCSV(&out, []dashboard.Day{{Date: "2026-11-20"}, {Date: "2026-11-21", Period: schema.Period{People: 1200, Bots: 34}}})
	want := "date,people,bots,total\n2026-11-20,0,0,0\n2026-11-21,1200,34,1234\n"
	if err != nil || out.String() != want {
		t.Errorf("got %q, error %v; want %q", out.String(), err, want)
	}
}

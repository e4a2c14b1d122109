package clickreport_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

var now = time.Date(2026, time.November, 22, 23, 30, 0, 0, time.UTC)

// parse parses fields such as "from=2026-11-01".
func parse(fields ...string) (clickreport.Request, map[string][]string) {
	values := map[string]string{}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		values[name] = value
	}
	return clickreport.Parse(func(field string) (string, bool) {
		value, ok := values[field]
		return value, ok
	}, now)
}

func mustParse(t *testing.T, fields ...string) clickreport.Request {
	t.Helper()
	r, problems := parse(fields...)
	if len(problems) > 0 {
		t.Fatalf("%v: %v", fields, problems)
	}
	return r
}

func TestRange(t *testing.T) {
	for _, c := range []struct{ fields, from, to string }{
		{"", "2026-10-24", "2026-11-22"},
		{"tz=Asia/Tokyo", "2026-10-25", "2026-11-23"},
		{"tz=America/New_York", "2026-10-24", "2026-11-22"},
		{"to=2026-03-01", "2026-01-31", "2026-03-01"},
		{"from=2026-11-20", "2026-11-20", "2026-11-22"},
		{"from=2024-02-29 to=2024-02-29", "2024-02-29", "2024-02-29"},
		{"from=2026-12-01 to=2026-12-31", "2026-12-01", "2026-12-31"},
	} {
		r := mustParse(t, strings.Fields(c.fields)...)
		testkit.Equal(t, c.fields, r.From.Format(time.DateOnly)+" "+r.To.Format(time.DateOnly), c.from+" "+c.to)
	}
}

// TestBounds has days and hours around the moments at which clocks are set.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		fields string
		hours  string // lengths of the periods
	}{
		{"from=2026-11-20 to=2026-11-22", "24 24 24"},
		{"from=2026-03-28 to=2026-03-30 tz=Europe/Berlin", "24 23 24"},
		{"from=2026-10-24 to=2026-10-26 tz=Europe/Berlin", "24 25 24"},
		{"from=2026-04-04 to=2026-04-05 tz=Australia/Lord_Howe", "24 24.5"},
		{"from=2026-04-23 to=2026-04-25 tz=Africa/Cairo", "24 23 24"}, // there is no 00:00 on the 24th
		{"from=2011-12-29 to=2011-12-31 tz=Pacific/Apia", "24 24"},    // there is no 30th
	} {
		var hours []string
		bounds := mustParse(t, strings.Fields(c.fields)...).Bounds()
		for i, at := range bounds[1:] {
			hours = append(hours, fmt.Sprint(at.Sub(bounds[i]).Hours()))
		}
		if got := strings.Join(hours, " "); got != c.hours {
			t.Errorf("%s: got %s, want %s", c.fields, got, c.hours)
		}
	}
	for fields, want := range map[string]int{
		"from=2026-03-29 to=2026-03-29 tz=Europe/Berlin interval=hour":       23,
		"from=2026-10-25 to=2026-10-25 tz=Europe/Berlin interval=hour":       25,
		"from=2026-11-01 to=2026-11-30 interval=hour tz=Asia/Kathmandu":      720,
		"from=2026-04-05 to=2026-04-05 interval=hour tz=Australia/Lord_Howe": 25,
	} {
		bounds := mustParse(t, strings.Fields(fields)...).Bounds()
		testkit.Equal(t, fields, len(bounds)-1, want)
		late := 0
		for _, at := range bounds {
			if at.Minute() != 0 {
				late++
			}
		}
		if late > 1 {
			t.Errorf("%s: %d hours do not begin with one of the clock", fields, late)
		}
	}
}

func TestPrevious(t *testing.T) {
	for fields, want := range map[string]string{
		"from=2026-11-20 to=2026-11-22":                          "2026-11-17T00:00:00Z",
		"from=2026-10-26 to=2026-10-26 tz=Europe/Berlin":         "2026-10-25T00:00:00+02:00",
		"from=2026-03-01 to=2026-03-31 tz=America/New_York":      "2026-01-29T00:00:00-05:00",
		"from=2026-11-22 to=2026-11-22 interval=hour tz=Etc/UTC": "2026-11-21T00:00:00Z",
	} {
		testkit.Equal(t, fields, mustParse(t, strings.Fields(fields)...).Previous().Format(time.RFC3339), want)
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct{ fields, problems string }{
		{"from=yesterday", "from"}, {"from=2026-02-30", "from"}, {"from=1969-12-31", "from"}, {"to=", "to"},
		{"to=2100-01-01", "to"},
		{"from=2026-11-22 to=2026-11-21", "to"}, {"from=2026-11-24", "from"}, {"tz=Mars/Base", "tz"}, {"tz=", "tz"},
		{"tz=Local", "tz"},
		{"tz=../../etc/passwd", "tz"}, {"interval=week", "interval"}, {"interval=", "interval"}, {"limit=0", "limit"},
		{"limit=1001", "limit"},
		{"limit=ten", "limit"}, {"from=2026-10-22 to=2026-11-22 interval=hour", "interval"}, {"from=2010-01-01", "from"},
		{"device=phone", "device"}, {"device=Desktop", "device"}, {"device=", "device"}, {"country=de", "country"},
		{"country=DEU", "country"},
		{"country=Germany", "country"}, {"country=Ü", "country"}, {"language=DE", "language"}, {"language=de-AT",
			"language"},
		{"language=German", "language"},
		{"country= language=", ""}, {"country=DE language=de device=other", ""},
		{"language=Other os=any browser=any referrer=any", ""}, {"language=haw", ""},
		{"referrer=\xff", "referrer"}, {"os=" + strings.Repeat("x", 1001), "os"},
		{"from=x to=y tz=z interval=i limit=l", "from interval limit to tz"},
		{"from=2026-10-23 to=2026-11-22 interval=hour", ""}, {"from=2016-11-15", ""}, {"os= device=bot", ""},
		{"limit=1000", ""},
	} {
		_, problems := parse(strings.Split(c.fields, " ")...)
		testkit.Equal(t, "fields with problems of "+c.fields,
			strings.Join(slices.Sorted(maps.Keys(problems)), " "), c.problems)
	}
}

// TestZones refuses names that mean another zone on another machine, or files that are no zones.
func TestZones(t *testing.T) {
	refused := []string{"", "Local", "local", "localtime", "Localtime", "LOCALTIME", "Factory", "posixrules",
		"posix/UTC",
		"posix/Europe/Berlin", "right/UTC", "right/Europe/Berlin", "Posix/UTC", "./localtime", "./posix/UTC",
		"Etc/../localtime",
		"Etc/./UTC", "Etc//UTC", "/etc/localtime", "../../../etc/localtime", "..", ".", "/", "Etc/", "/UTC", "UTC/",
		"Europe",
		"Europe/berlin", "europe/Berlin", "zone.tab", "zone1970.tab", "tzdata.zi", "leapseconds", "leap-seconds.list",
		"+VERSION", "SECURITY", " UTC", "UTC ", "UTC\n", "UTC\x00", "Europe\\Berlin", "Europe/Ber\u013Ain", "UTC+2",
		"Mars/Base"}
	for _, name := range refused {
		if zone, found := clickreport.FindZone(name); found {
			t.Errorf("%q is the zone %v", name, zone)
		}
	}
	for _, name := range []string{"UTC", "GMT", "Zulu", "Etc/UTC", "Etc/GMT+12", "Etc/GMT-14", "Etc/GMT0",
		"Europe/Berlin",
		"America/Argentina/Buenos_Aires", "America/North_Dakota/New_Salem", "America/Port-au-Prince", "Asia/Ho_Chi_Minh",
		"Africa/Dar_es_Salaam", "Pacific/Apia", "EST5EDT", "GB-Eire", "NZ-CHAT", "W-SU", "PRC", "US/Eastern",
		"America/Ciudad_Juarez"} {
		if zone, found := clickreport.FindZone(name); !found || zone.String() != name {
			t.Errorf("%s is no zone", name)
		}
	}
}

// coarse is a store that has fewer details of old clicks.
type coarse schema.ReportDetail

func (c coarse) ReportDetail(context.Context) (schema.ReportDetail, error) {
	return schema.ReportDetail(c), nil
}

func TestCheckDetail(t *testing.T) {
	since := time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ fields, field, day string }{
		{"from=2026-05-31 to=2026-06-02", "", ""},
		{"from=2026-05-31 to=2026-06-02 tz=Etc/UTC", "", ""},
		{"from=2026-05-31 to=2026-06-02 tz=Atlantic/Reykjavik", "", ""}, // has UTC
		{"from=2026-05-31 to=2026-06-02 interval=hour", "interval", "2026-06-01"},
		{"from=2026-06-01 to=2026-06-02 interval=hour", "", ""},
		{"from=2026-06-01 to=2026-06-02 tz=Europe/Berlin", "tz", "2026-06-02"},
		{"from=2026-06-02 to=2026-06-02 tz=Europe/Berlin", "", ""},
		{"from=2026-05-31 to=2026-06-02 tz=America/Los_Angeles", "tz", "2026-06-01"},
		{"from=2026-06-01 to=2026-06-02 tz=America/Los_Angeles", "", ""},
		{"from=2026-05-31 to=2026-06-02 os=iOS", "", ""},
	} {
		problems, err := mustParse(t, strings.Fields(c.fields)...).CheckDetail(t.Context(),
			coarse(schema.ReportDetail{Hours: since}))
		testkit.Must(t, err)
		if fields := slices.Collect(maps.Keys(problems)); strings.Join(fields, " ") != c.field || c.field != "" &&
			!strings.Contains(problems[c.field][0], c.day) {
			t.Errorf("%s: %v, want %s with %s", c.fields, problems, c.field, c.day)
		}
		problems, err = mustParse(t, strings.Fields(c.fields)...).CheckDetail(t.Context(), coarse(schema.ReportDetail{}))
		testkit.Must(t, err)
		testkit.Equal(t, "problems of a store that knows all", len(problems), 0)
	}
}

// TestOldZones has a zone whose offset was not a multiple of 15 minutes: the store gets the nearest quarter before.
func TestOldZones(t *testing.T) {
	store := sqlitetest.NewClickStore(t)
	for _, zone := range []string{"UTC", "Pacific/Apia", "Africa/Cairo", "Asia/Kathmandu", "Australia/Lord_Howe"} {
		for _, fields := range [][]string{{"from=2016-11-20"}, {"from=2011-12-29", "to=2011-12-31"}, {"interval=hour"},
			{"from=2011-12-31", "to=2011-12-31"}, {"from=2011-12-30", "to=2011-12-30"},
			{"from=1990-01-01", "to=1990-12-31"}} {
			r := mustParse(t, append(fields, "tz="+zone)...)
			if fields[0] == "interval=hour" {
				r = mustParse(t, "tz="+zone, "interval=hour", "from=2026-11-01", "to=2026-11-22")
			}
			result, err := r.OfLink(t.Context(), store, schema.Link{ID: 1, AccountID: 1})
			testkit.Must(t, err)
			testkit.Equal(t, "periods", len(result.Series), len(r.Bounds())-1)
		}
	}
}

package dashboard_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/api/clickreport"
	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// daysFrom returns n days of which day i has people(i) and bots(i) clicks.
func daysFrom(first string, n int, clicks func(i int) (people, bots int64)) []dashboard.Day {
	at, err := time.Parse(time.DateOnly, first)
	if err != nil {
		panic(err)
	}
	days := make([]dashboard.Day, n)
	for i := range days {
		people, bots := clicks(i)
		days[i] = dashboard.Day{Date: at.AddDate(0, 0, i).Format(time.DateOnly),
			Count: clickreport.Count{Period: schema.Period{People: people, Bots: bots}}}
	}
	return days
}

func coordinate(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestChart(t *testing.T) {
	t.Run("stacks bots on people, in proportion to the axis", func(t *testing.T) {
		c := dashboard.NewChart(daysFrom("2026-11-20", 2, func(i int) (int64, int64) { return 60 * int64(i), 20 * int64(i) }))
		b := c.Bars[1]
		if b.Name != "2026-11-21" || b.People != 60 || b.Bots != 20 {
			t.Errorf("%+v", b)
		}
		if end := c.Ticks[len(c.Ticks)-1]; end.Label != "80" {
			t.Errorf("the axis ends at %s, want 80", end.Label)
		}
		people, bots := coordinate(t, b.PeopleH), coordinate(t, b.BotsH)
		if people != 180 || bots != 60-2 {
			t.Errorf("heights of 60 and 20 are %v and %v, want 180 and 60 less a gap of 2", people, bots)
		}
		if c.People != "M1 0v180" || c.Bots != "M1 182v58" {
			t.Errorf("they are drawn as %s and %s", c.People, c.Bots)
		}
		if c.Bars[0].PeopleH != "0" || c.Bars[0].BotsH != "0" {
			t.Errorf("a day without clicks has a bar: %+v", c.Bars[0])
		}
	})
	t.Run("stacks imported clicks on the others, apart", func(t *testing.T) {
		days := daysFrom("2026-11-20", 2, func(i int) (int64, int64) { return 40 * int64(i), 20 * int64(i) })
		days[1].Imported, days[0].Imported = 20, 40
		c := dashboard.NewChart(days)
		if c.People != "M1 0v120" || c.Bots != "M1 122v58" || c.Imported != "M0 0v120M1 182v58" {
			t.Errorf("they are drawn as %s, %s and %s", c.People, c.Bots, c.Imported)
		}
		if want := ": 40 by people, 20 by bots, 60 imported; the most, 80, "; !strings.Contains(c.Summary, want) {
			t.Errorf("the summary is %q", c.Summary)
		}
		plain := dashboard.NewChart(daysFrom("2026-11-20", 2, func(int) (int64, int64) { return 1, 1 }))
		if plain.Imported != "" {
			t.Errorf("without imported clicks, %s is drawn", plain.Imported)
		}
	})
	t.Run("shows one click among millions", func(t *testing.T) {
		c := dashboard.NewChart(daysFrom("2026-11-20", 2, func(i int) (int64, int64) { return 1 + 5_000_000*int64(i), 0 }))
		if h := coordinate(t, c.Bars[0].PeopleH); h < 1 {
			t.Errorf("its bar is %v pixels high", h)
		}
	})
	t.Run("keeps bars and labels within the plot, however many days", func(t *testing.T) {
		for _, n := range []int{1, 2, 7, 8, 30, 90, 91, 366, 630, 631, 2700, 2800, 3660} {
			staysWithinPlot(t, n)
		}
	})
	t.Run("sums weeks from Monday, months, and quarters, where days are too many", func(t *testing.T) {
		one := func(int) (int64, int64) { return 1, 1 }
		weeks := dashboard.NewChart(daysFrom("2025-01-01", 500, one)) // a Wednesday
		if weeks.Unit != "week" || weeks.Bars[0].Name != "2024-12-30" || weeks.Bars[0].People != 5 ||
			weeks.Bars[1].Bots != 7 {
			t.Errorf("%s: %+v", weeks.Unit, weeks.Bars[:2])
		}
		months := dashboard.NewChart(daysFrom("2016-02-10", 2000, one))
		if months.Unit != "month" || months.Bars[0].Name != "2016-02-01" || months.Bars[0].People != 20 ||
			months.Bars[1].Name != "2016-03-01" || months.Bars[1].People != 31 {
			t.Errorf("%s: %+v", months.Unit, months.Bars[:2])
		}
		quarters := dashboard.NewChart(daysFrom("2016-05-31", 3000, one))
		if quarters.Unit != "quarter" || quarters.Bars[0].Name != "2016-04-01" || quarters.Bars[0].People != 31 ||
			quarters.Bars[1].Name != "2016-07-01" || quarters.Bars[1].People != 92 {
			t.Errorf("%s: %+v", quarters.Unit, quarters.Bars[:2])
		}
	})
	t.Run("sums six or twelve hours where hours are too many", func(t *testing.T) {
		for days, want := range map[int]struct {
			bars   int
			title  string
			second string
			people int64
		}{3: {72, "Hour", "2026-11-01 01:00", 1}, 4: {16, "Six hours from", "2026-11-01 06:00", 6},
			22: {88, "Six hours from", "2026-11-01 06:00", 6},
			27: {54, "Twelve hours from", "2026-11-01 12:00", 12}, 31: {62, "Twelve hours from", "2026-11-01 12:00", 12}} {
			var hours []dashboard.Day
			for i := range days * 24 {
				at := time.Date(2026, 11, 1, i, 0, 0, 0, time.UTC)
				hours = append(hours, dashboard.Day{Date: at.Format("2006-01-02 15:04"),
					Count: clickreport.Count{Period: schema.Period{People: 1}}})
			}
			c := dashboard.NewChart(hours)
			if len(c.Bars) != want.bars || c.Bars[1].Name != want.second || c.Bars[1].People != want.people ||
				c.UnitTitle() != want.title {
				t.Errorf("%d days: %d bars of %s, the second: %+v", days, len(c.Bars), c.Unit, c.Bars[1])
			}
		}
	})
	t.Run("begins at the birth of the link, or at earlier clicks", func(t *testing.T) {
		for name, of := range map[string]struct {
			since   string
			clicks  int // number of the day with clicks
			first   string
			columns int
			unborn  bool
		}{
			"in the days":           {"2026-11-05", 9, "2026-11-05", 7, false},
			"on the last day":       {"2026-11-10", 9, "2026-11-10", 7, false},
			"on the first day":      {"2026-11-01", 9, "2026-11-01", 10, false},
			"long ago":              {"2020-01-01", 9, "2026-11-01", 10, false},
			"after imported clicks": {"2026-11-09", 2, "2026-11-03", 8, false},
			"after the days":        {"2026-11-11", 10, "2026-11-01", 10, true},
		} {
			since, err := time.Parse(time.DateOnly, of.since)
			testkit.Must(t, err)
			days := daysFrom("2026-11-01", 10, func(i int) (int64, int64) { return int64(max(0, 1+i-of.clicks)), 0 })
			c := dashboard.ChartSince(days, since.Add(23*time.Hour))
			if c.Bars[0].Name != of.first || c.Columns != of.columns || c.Unborn != of.unborn {
				t.Errorf("%s: %s, %d columns, unborn %v", name, c.Bars[0].Name, c.Columns, c.Unborn)
			}
		}
		var hours []dashboard.Day
		for i := range 24 {
			hours = append(hours, dashboard.Day{Date: time.Date(2026, 11, 1, i, 0, 0, 0, time.UTC).Format("2006-01-02 15:04")})
		}
		born := time.Date(2026, 11, 1, 14, 37, 0, 0, time.UTC)
		if c := dashboard.ChartSince(hours, born); c.Bars[0].Name != "2026-11-01 14:00" || len(c.Bars) != 10 {
			t.Errorf("%d hours from %s", len(c.Bars), c.Bars[0].Name)
		}
		days := daysFrom("2026-11-01", 10, func(int) (int64, int64) { return 0, 0 })
		c := dashboard.ChartSince(days, born.AddDate(0, 0, 8))
		if x := c.Dates[len(c.Dates)-1].X; x != "7.14%" { // the middle of the first of seven columns
			t.Errorf("the first of %d dates is at %s", len(c.Dates), x)
		}
	})
	t.Run("draws one figure", func(t *testing.T) {
		days := daysFrom("2026-11-20", 2, func(i int) (int64, int64) { return 40 * int64(i), 20 * int64(i) })
		days[0].Visitors, days[1].Visitors = new(int64), new(int64(30))
		for figure, want := range map[string]struct{ title, people, bots, top string }{
			"":         {"Clicks per day", "M1 0v160", "M1 162v78", "60"},
			"people":   {"People per day", "M1 0v240", "", "40"},
			"visitors": {"Visitors per day", "M1 0v240", "", "30"},
			"bots":     {"Bots per day", "", "M1 0v240", "20"},
			"imported": {"Clicks per day", "M1 0v160", "M1 162v78", "60"}, // there are none
		} {
			c := dashboard.ChartOf(figure, days, time.Time{})
			top := c.Ticks[len(c.Ticks)-1].Label
			if c.Title() != want.title || c.People != want.people || c.Bots != want.bots || top != want.top {
				t.Errorf("%s: %s, %s, %s up to %s", figure, c.Title(), c.People, c.Bots, top)
			}
			if !strings.Contains(c.Summary, "40 by people, 20 by bots; the most, "+want.top) {
				t.Errorf("%s: the summary is %q", figure, c.Summary)
			}
		}
		days[0].Imported, days[1].Visitors, days[0].Visitors = 5, nil, nil
		if c := dashboard.ChartOf("imported", days, time.Time{}); c.Title() != "Imported per day" || c.Bots != "" ||
			c.Imported != "M0 0v200" {
			t.Errorf("%s, %s", c.Title(), c.Imported)
		}
		for range 2 { // visitors of no day are known, then visitors of one day
			if c := dashboard.ChartOf("visitors", days, time.Time{}); c.Figure != "" {
				t.Errorf("without visitors: %s", c.Title())
			}
			days[1].Visitors = new(int64(2))
		}
	})
	t.Run("has a line of the time before", func(t *testing.T) {
		before := func(people ...int64) []dashboard.Day {
			days := daysFrom("2026-11-20", 4, func(i int) (int64, int64) { return 10 * int64(i), 5 })
			for i, n := range people {
				days[i].Before = &clickreport.Count{Period: schema.Period{People: n, Bots: 40}}
			}
			return days
		}
		for name, of := range map[string]struct {
			figure string
			days   []dashboard.Day
			ghost  string
			top    string
		}{
			"none":                  {"", before(), "", "40"},
			"day by day, and above": {"", before(40, 10, 60, 0), "M0 192l1-72 1 120 1-144", "100"},
			"until the same time":   {"", before(40, 10), "M0 240l1-90", "80"},
			"of one day":            {"", before(0), "M-.5 240h1", "40"},
			"of a figure":           {"people", before(15, 0), "M0 120l1-120", "30"},
			"without such clicks":   {"people", before(0, 0), "", "30"},
			"unknown":               {"visitors", before(9, 9), "M0 196l1 0", "60"}, // clicks are drawn
		} {
			c := dashboard.ChartOf(of.figure, of.days, time.Time{})
			if top := c.Ticks[len(c.Ticks)-1].Label; c.Ghost != of.ghost || top != of.top {
				t.Errorf("%s: %q up to %s, want %q up to %s", name, c.Ghost, top, of.ghost, of.top)
			}
		}
		var weeks []dashboard.Day
		for _, day := range daysFrom("2025-01-01", 500, func(int) (int64, int64) { return 1, 0 }) {
			day.Before = &clickreport.Count{Period: schema.Period{People: 2}, Visitors: new(int64(1))}
			weeks = append(weeks, day)
		}
		if b := dashboard.NewChart(weeks).Bars[1]; b.Before.People != 14 || *b.Before.Visitors != 7 {
			t.Errorf("a week has %+v before", b.Before)
		}
	})
	t.Run("has its counts in words", func(t *testing.T) {
		c := dashboard.NewChart(daysFrom("2026-11-19", 3, func(i int) (int64, int64) {
			return 1000 * int64(i%2), 234 * int64(i%2)
		}))
		want := "Clicks per day from 19 Nov 2026 to 21 Nov 2026, UTC: 1,000 by people, 234 by bots; " +
			"the most, 1,234, in the day from 20 Nov 2026"
		if c.Summary != want {
			t.Errorf("got %q, want %q", c.Summary, want)
		}
	})
	t.Run("is empty without days", func(t *testing.T) {
		if c := dashboard.NewChart(nil); len(c.Bars) > 0 || c.Summary != "No clicks" {
			t.Errorf("%+v", c)
		}
	})
}

func staysWithinPlot(t *testing.T, n int) {
	t.Helper()
	total := int64(0)
	c := dashboard.NewChart(daysFrom("2000-01-01", n, func(i int) (int64, int64) { return int64(i % 7), 1 }))
	if len(c.Bars) == 0 || len(c.Bars) > 90 {
		t.Errorf("%d days: %d bars", n, len(c.Bars))
	}
	for _, b := range c.Bars {
		total += b.Total()
	}
	if drawn := strings.Count(c.Bots, "M"); drawn != len(c.Bars) ||
		!strings.Contains(c.Bots, fmt.Sprintf("M%d ", len(c.Bars)-1)) {
		t.Errorf("%d days: %d of %d bars are drawn", n, drawn, len(c.Bars))
	}
	want := int64(n)
	for i := range n {
		want += int64(i % 7)
	}
	if total != want {
		t.Errorf("%d days: the bars have %d clicks, want %d", n, total, want)
	}
	if len(c.Dates) == 0 || len(c.Dates) > 7 {
		t.Errorf("%d days: %d labels", n, len(c.Dates))
	}
	for _, d := range c.Dates {
		if x := coordinate(t, d.X); x < 0 || x > 100 {
			t.Errorf("%d days: a label at %s", n, d.X)
		}
	}
}

// The labels below the bars do not cover each other, for any number of days, on phones and where all labels are shown.
func TestDatesBelow(t *testing.T) {
	for n := 1; n <= 3500; n += 1 + n/12 {
		c := dashboard.NewChart(daysFrom("2017-01-01", n, func(int) (int64, int64) { return 1, 0 }))
		for plot, all := range map[float64]bool{208: false, 505: true} { // pixels, in windows of 320 and 641
			left := math.Inf(1)
			for _, d := range c.Dates { // from the right
				if d.Minor && !all {
					continue
				}
				width, middle := 7*float64(len(d.Label)), coordinate(t, d.X)/100*plot
				begin := middle - width*map[string]float64{"start": 0, "middle": 0.5, "end": 1}[d.Anchor]
				if begin+width+2 > left {
					t.Fatalf("%d days on %v pixels: %q ends at %v, the next begins at %v", n, plot, d.Label, begin+width, left)
				}
				left = begin
			}
		}
	}
}

// A label of hours stands below the middle of its day, so that readers do not take it for the name of the next day.
func TestDatesBelowHours(t *testing.T) {
	for days := 3; days <= 31; days++ {
		var hours []dashboard.Day
		for i := range 24 * days {
			at := time.Date(2026, 10, 24, i, 0, 0, 0, time.UTC)
			hours = append(hours, dashboard.Day{Date: at.Format("2006-01-02 15:04"),
				Count: clickreport.Count{Period: schema.Period{People: 1}}})
		}
		left := math.Inf(1)
		for _, d := range dashboard.NewChart(hours).Dates { // from the right
			at, err := time.Parse("2 Jan", d.Label)
			testkit.Must(t, err)
			day := time.Date(2026, at.Month(), at.Day(), 0, 0, 0, 0, time.UTC).Sub(time.Date(2026, 10, 24, 0, 0, 0, 0,
				time.UTC)).Hours() / 24
			middle := coordinate(t, d.X)
			if want := 100 * (day + 0.5) / float64(days); d.Anchor == "middle" && math.Abs(middle-want) > 0.1 || middle >= left {
				t.Fatalf("%d days of hours: %q is at %v, want %v", days, d.Label, middle, want)
			}
			left = middle
		}
	}
}

func TestTicks(t *testing.T) {
	for greatest, want := range map[int64]string{
		0: "0 1", 1: "0 1", 2: "0 1 2", 3: "0 1 2 3", 4: "0 1 2 3 4", 5: "0 2 4 6", 9: "0 5 10", 10: "0 5 10",
		80: "0 20 40 60 80", 81: "0 50 100", 1000: "0 500 1,000", 9_999: "0 5k 10k",
		123_456: "0 50k 100k 150k", 4_500_000: "0 2M 4M 6M", math.MaxInt64 / 10: "0 500P 1000P",
	} {
		ticks, top := dashboard.TicksTo(greatest)
		var labels []string
		for _, tick := range ticks {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want || top < greatest {
			t.Errorf("%d: got %s up to %d, want %s", greatest, got, top, want)
		}
	}
	for n := int64(0); n < 100_000; n += 7 {
		ticks, top := dashboard.TicksTo(n)
		if len(ticks) < 2 || len(ticks) > 5 || top < n || top > 2*n+2 {
			t.Fatalf("%d: %d ticks up to %d", n, len(ticks), top)
		}
	}
}

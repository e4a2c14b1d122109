package dashboard

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"linkstream/schema"
)

// linkReport is the data of a link's statistics.
type linkReport struct {
	Total    int64 // of all time
	Days     int   // number of days
	Sum      sum   // of the period
	Chart    chart
	Devices  ranking
	Browsers ranking
	Systems  ranking
	Spoken   ranking // languages
	From     ranking // referrers
	Where    ranking // countries
	Progress progress
}

// ranking is a list of names by frequency.
type ranking struct {
	Title, Hint string
	Rows        []share
	All         string // path of the page with more rows; "" if these are all
}

// share is a name with its count and its percentage.
type share struct {
	Name  string
	Total int64
	Part  float64 // 0 to 100
	Bots  bool
	Path  string // of the report of clicks with the name; "" without a link
}

// Width returns the share as an SVG length.
func (s share) Width() string { return percent(s.Part) }

// Percent formats the share. Only 0 prints as 0 % and only 100 as 100 %.
func (s share) Percent() string {
	switch {
	case s.Part > 0 && s.Part < 1:
		return "<1 %"
	case s.Part > 99 && s.Part < 100:
		return ">99 %"
	}
	return strconv.FormatFloat(s.Part, 'f', 0, 64) + " %"
}

// linkReport returns the report of a link. Its total equals the API's.
func (d *Dashboard) linkReport(c *call, link schema.Link, asked period) (*linkReport, error) {
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	now := time.Now()
	got, err := d.Reports.LinkReport(ctx, link.ID, asked.since(now))
	if err != nil {
		return nil, ofClicks(err)
	}
	days := linkDays(link, got.Days, asked, now)
	report := &linkReport{Sum: sumOf(got.Days), Days: len(days)}
	if asked.days == 0 {
		days = atLeast(minChartDays, days)
	}
	report.Chart = newChart(days)
	report.Total = report.Sum.Total()
	if asked.days > 0 {
		counts, err := d.Clicks.ClickCounts(ctx, []int64{link.ID})
		if err != nil {
			return nil, ofClicks(err)
		}
		report.Total = counts[link.ID]
	}
	people := report.Sum.People
	report.Devices = deviceRanking(got.Devices)
	report.Browsers = newRanking("Browsers", got.Browsers, people, orElse("Unknown"))
	report.Systems = newRanking("Operating systems", got.Systems, people, orElse("Unknown"))
	report.Spoken = newRanking("Languages", got.Languages, people, func(name string) string { return nameOf(schema.ByLanguage, name) })
	report.From = newRanking("Referrers", got.Referrers, people, orElse("Direct or unknown"))
	report.Where = countryRanking(got.Countries, people)
	report.Progress = d.lag.progress(c.ctx)
	return report, nil
}

// linkDays returns every day of a link's period.
func (d *Dashboard) linkDays(c *call, link schema.Link, asked period) ([]schema.DayReport, error) {
	now := time.Now()
	got, err := d.Reports.LinkReport(c.ctx, link.ID, asked.since(now))
	if err != nil {
		return nil, ofClicks(err)
	}
	return linkDays(link, got.Days, asked, now), nil
}

// linkDays fills in days without clicks. "All" begins with the day on which the link was created.
func linkDays(link schema.Link, days []schema.DayReport, asked period, now time.Time) []schema.DayReport {
	first := asked.since(now)
	if first.IsZero() {
		first = link.CreatedAt
	}
	return everyDay(days, first, today(now))
}

// newRanking returns the names, most frequent first, and the remainder of all as "Others".
func newRanking(title string, counts []schema.NameCount, all int64, show func(string) string) ranking {
	r := ranking{Title: title}
	rest := all
	for _, count := range counts {
		r.Rows = append(r.Rows, newShare(show(count.Name), count.Total, all))
		rest -= count.Total
	}
	if rest > 0 && len(counts) > 0 {
		r.Rows = append(r.Rows, newShare("Others", rest, all))
	}
	return r
}

func newShare(name string, total, all int64) share {
	return share{Name: name, Total: total, Part: 100 * float64(total) / float64(max(1, all))}
}

func orElse(unknown string) func(string) string {
	return func(name string) string {
		if name == "" {
			return unknown
		}
		return name
	}
}

// deviceRanking lists people's devices as shares of people, then bots as a share of all clicks.
func deviceRanking(devices map[schema.Device]int64) ranking {
	var people []schema.NameCount
	sum := int64(0)
	for device, total := range devices {
		if device != schema.Bot {
			people = append(people, schema.NameCount{Name: string(device), Total: total})
			sum += total
		}
	}
	slices.SortFunc(people, func(a, b schema.NameCount) int {
		if a.Total != b.Total {
			return int(max(-1, min(1, b.Total-a.Total)))
		}
		return strings.Compare(a.Name, b.Name)
	})
	r := newRanking("Devices", people, sum, func(name string) string { return strings.ToUpper(name[:1]) + name[1:] })
	if bots := devices[schema.Bot]; bots > 0 {
		row := newShare("Bots (of all clicks)", bots, sum+bots)
		row.Bots = true
		r.Rows = append(r.Rows, row)
	}
	return r
}

// countryRanking says when countries are known if none is.
func countryRanking(counts []schema.NameCount, all int64) ranking {
	known := slices.ContainsFunc(counts, func(c schema.NameCount) bool { return c.Name != "" })
	if known || len(counts) == 0 {
		return newRanking("Countries", counts, all, countryName)
	}
	return ranking{Title: "Countries", Hint: "The countries of these clicks are not known. They are known for clicks from public " +
		"addresses that were counted while this service had a database of countries."}
}

// countryName returns the English name of an ISO 3166-1 code.
func countryName(code string) string {
	if code == "" {
		return "Unknown"
	}
	if region, err := language.ParseRegion(code); err == nil {
		if name := display.English.Regions().Name(region); name != "" {
			return name
		}
	}
	return code
}

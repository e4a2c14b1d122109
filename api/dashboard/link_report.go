package dashboard

import (
	"context"
	"slices"
	"strconv"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// linkReport is the data of a link's statistics.
type linkReport struct {
	Total    int64         // of all time
	Days     int           // number of days
	Sum      schema.Period // of the period
	Chart    chart
	Devices  ranking
	Browsers ranking
	Systems  ranking
	Spoken   ranking  // languages
	From     ranking  // referrers
	Where    ranking  // countries
	Routes   *ranking // nil if all clicks led to the long URL
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
	days, got, err := daysOf(ctx, d.Clicks, schema.ReportQuery{Limit: clickreport.DefaultTop}, link, asked, c.now())
	if err != nil {
		return nil, ofClicks(err)
	}
	report := &linkReport{Sum: sumOf(days), Days: len(days)}
	if asked.days == 0 {
		days = atLeast(minChartDays, days)
	}
	report.Chart = newChart(asked.zone(link, c.now()), days, link.CreatedAt)
	counts, err := d.Clicks.Of(c.account.ID).ClickCounts(ctx, []int64{link.ID})
	if err != nil {
		return nil, ofClicks(err)
	}
	report.Total = counts[link.ID]
	report.Devices = deviceRanking(got.Names[schema.ByDevice], report.Sum)
	people := report.Sum.People
	report.Browsers = newRanking("Browsers", got.Names[schema.ByBrowser], people, orElse("Unknown"))
	report.Systems = newRanking("Operating systems", got.Names[schema.ByOS], people, orElse("Unknown"))
	report.Spoken = newRanking("Languages", got.Names[schema.ByLanguage], people, func(name string) string { return nameOf(schema.ByLanguage, name) })
	report.From = newRanking("Referrers", got.Names[schema.ByReferrer], people, orElse("Direct or unknown"))
	report.Where = countryRanking(got.Names[schema.ByCountry], people)
	if routes := got.Names[schema.ByRoute]; hasRoutes(routes) {
		report.Routes = new(newRanking(dimensionTitles[schema.ByRoute], routes, people, func(name string) string { return nameOf(schema.ByRoute, name) }))
	}
	report.Progress = d.progress(c)
	return report, nil
}

// hasRoutes reports whether a rule or variant has sent visitors elsewhere.
func hasRoutes(routes []schema.NameCount) bool {
	return slices.ContainsFunc(routes, func(n schema.NameCount) bool { return n.Name != "" })
}

// linkDays returns every day of a link's period.
func (d *Dashboard) linkDays(c *call, link schema.Link, asked period) ([]dayClicks, error) {
	days, _, err := daysOf(c.ctx, d.Clicks, schema.ReportQuery{Limit: 1, NoNames: true}, link, asked, c.now())
	if err != nil {
		return nil, ofClicks(err)
	}
	return days, nil
}

// daysOf reads the days of a link's period. "All" begins with the day on which the link was created.
func daysOf(
	ctx context.Context, reports schema.ReportStore, q schema.ReportQuery, link schema.Link, asked period, now time.Time,
) ([]dayClicks, schema.Report, error) {
	q.AccountID, q.Links = link.AccountID, []int64{link.ID}
	first := asked.since(now)
	if first.IsZero() {
		return readDays(ctx, reports, q, clickreport.DayOf(link.CreatedAt.In(asked.zone(link, now))), now, true)
	}
	return readDays(ctx, reports, q, first, now, false)
}

// zone returns the zone of the days of a link's period: that of now, but UTC if there may be days that are known in UTC only.
func (p period) zone(link schema.Link, now time.Time) *time.Location {
	if p.days == 0 && link.CreatedAt.Before(knownSince(now)) {
		return time.UTC
	}
	return now.Location()
}

// knownSince returns a day from which on clicks are known by the quarter of an hour.
func knownSince(now time.Time) time.Time {
	return time.Date(now.Year(), now.Month()-12, 1, 0, 0, 0, 0, now.Location())
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
func deviceRanking(devices []schema.NameCount, all schema.Period) ranking {
	r := newRanking("Devices", devices, all.People, func(name string) string { return nameOf(schema.ByDevice, name) })
	if all.Bots > 0 {
		row := newShare("Bots (of all clicks)", all.Bots, all.Total())
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

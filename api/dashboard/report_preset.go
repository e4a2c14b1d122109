package dashboard

import (
	"slices"
	"time"

	"linkstream/api/clickreport"
)

// minDays is the least number of days in the report of all days. A new link would otherwise have one bar, as wide as
// the page.
const minDays = 14

// preset is a period that reports are often of.
type preset struct {
	Label, Path string
	Current     bool // the report is of this period
}

// presets returns the usual periods up to now, in the zone of now. since is the earliest time of a click.
func (p *reportPage) presets(asked clickreport.Request, since, now time.Time) []preset {
	day := func(months, days int) time.Time { return clickreport.DateOf(now).AddDate(0, months, days) }
	today, yesterday := day(0, 0), day(0, -1)
	all := []preset{
		p.preset("Today", "", asked, today, today, clickreport.Hour),
		p.preset("Yesterday", "", asked, yesterday, yesterday, clickreport.Hour),
		p.preset("7 days", "", asked, day(0, -6), today, clickreport.Day),
		p.preset("30 days", "", asked, day(0, -29), today, clickreport.Day),
		p.preset("90 days", "", asked, day(0, -89), today, clickreport.Day),
		p.preset("This month", "", asked, day(0, 1-now.Day()), today, clickreport.Day),
		p.preset("12 months", "", asked, day(-12, 1), today, clickreport.Day),
	}
	zone, in := "", now.Location()
	if since.Before(knownSince(now)) { // earlier clicks may be known by UTC day only
		zone, in = "UTC", time.UTC
	}
	first, last := clickreport.DateOf(since.In(in)), clickreport.DateOf(now.In(in))
	if latest := day(0, 1-minDays); first.After(latest) {
		first = latest
	}
	if earliest := last.AddDate(0, 0, 1-clickreport.MaxDays); first.Before(earliest) {
		first = earliest
	}
	ever := p.preset("All", zone, asked, first, last, clickreport.Day)
	ever.Current = ever.Current && !slices.ContainsFunc(all, func(other preset) bool { return other.Current })
	return append(all, ever)
}

func (p *reportPage) preset(
	label, zone string, asked clickreport.Request, from, to time.Time, by clickreport.Interval,
) preset {
	as := *p
	as.Form.From, as.Form.To = from.Format(time.DateOnly), to.Format(time.DateOnly)
	as.Form.Zone = zone
	current := p.Form.From == as.Form.From && p.Form.To == as.Form.To && p.Form.Zone == zone && asked.Interval == by
	asked.Interval = by
	return preset{label, as.path(asked, nil), current}
}

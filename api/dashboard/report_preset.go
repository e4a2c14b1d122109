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

// fieldPeriod is the field of a period up to today, which an address means on any day.
const fieldPeriod = "period"

// usualPeriod is the period of a report that names none.
const usualPeriod = "30d"

// period is a usual period. Its fields of the query say the same by days.
type period struct {
	Key, Label string
	fields     map[string]string
}

// periodsUpTo returns the usual periods.
func periodsUpTo(today time.Time) []period {
	of := func(key, label string, months, days, last int, by clickreport.Interval) period {
		return period{key, label, map[string]string{
			clickreport.FieldFrom:     today.AddDate(0, months, days).Format(time.DateOnly),
			clickreport.FieldTo:       today.AddDate(0, 0, last).Format(time.DateOnly),
			clickreport.FieldInterval: string(by)}}
	}
	return []period{
		of("today", "Today", 0, 0, 0, clickreport.Hour),
		of("yesterday", "Yesterday", 0, -1, -1, clickreport.Hour),
		of("7d", "7 days", 0, -6, 0, clickreport.Day),
		of(usualPeriod, "30 days", 0, -29, 0, clickreport.Day),
		of("90d", "90 days", 0, -89, 0, clickreport.Day),
		of("month", "This month", 0, 1-today.Day(), 0, clickreport.Day),
		of("12m", "12 months", -12, 1, 0, clickreport.Day),
	}
}

// choosePeriod reads the period that a query names. Days win over it.
func (p *reportPage) choosePeriod(c *call, today time.Time) {
	for _, field := range []string{clickreport.FieldFrom, clickreport.FieldTo} {
		if c.query(field) != "" {
			return
		}
	}
	key := c.query(fieldPeriod)
	if key == "" && c.query(clickreport.FieldInterval) == "" && c.query(clickreport.FieldZone) == "" {
		key = usualPeriod
	}
	for _, one := range periodsUpTo(today) {
		if one.Key == key {
			p.Form.Period = one
		}
	}
}

// presets returns the usual periods up to now, in the zone of now. since is the earliest time of a click.
func (p *reportPage) presets(asked clickreport.Request, since, now time.Time) (all []preset) {
	day := func(months, days int) time.Time { return clickreport.DateOf(now).AddDate(0, months, days) }
	for _, one := range periodsUpTo(day(0, 0)) {
		as := *p
		as.Form.Period, as.Form.Zone = one, ""
		current := p.Form.Zone == "" && p.Form.From == one.fields[clickreport.FieldFrom] &&
			p.Form.To == one.fields[clickreport.FieldTo] &&
			string(asked.Interval) == one.fields[clickreport.FieldInterval]
		all = append(all, preset{one.Label, as.path(asked, nil), current})
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
	as.Form.Period = period{}
	as.Form.From, as.Form.To = from.Format(time.DateOnly), to.Format(time.DateOnly)
	as.Form.Zone = zone
	current := p.Form.From == as.Form.From && p.Form.To == as.Form.To && p.Form.Zone == zone && asked.Interval == by
	asked.Interval = by
	return preset{label, as.path(asked, nil), current}
}

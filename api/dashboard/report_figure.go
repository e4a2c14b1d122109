package dashboard

import (
	"slices"

	"linkstream/api/clickreport"
)

// fieldShow is the field of the figure that the chart draws.
const fieldShow = "show"

// figure is a number at the head of a report.
type figure struct {
	Key, Name string
	Count     int64
	Before    *int64 // in the time before; nil if nothing is known of it
	Change    string // since then, "" if that cannot be said
	Path      string // of the page whose chart draws it; "" if it cannot be drawn
	Current   bool   // it is drawn
}

// figureNamed returns the figure that a query names, clicks if there is none.
func figureNamed(key string) string {
	if slices.Contains([]string{figurePeople, figureVisitors, figureBots, figureImported}, key) {
		return key
	}
	return figureClicks
}

// figures returns the figures of a report that has been counted.
func (p *reportPage) figures(asked clickreport.Request, r *clickReport) (all []figure) {
	add := func(key, name string, count, before int64, drawn bool) {
		f := figure{Key: key, Name: name, Count: count, Current: key == r.Chart.Figure}
		if r.Counter.Compared {
			f.Before, f.Change = &before, r.Counter.change(count, before)
		}
		if drawn {
			of := *p
			of.Form.Figure = key
			f.Path = of.pathOf("", asked, nil, asked.Limit) // short, as the parts of a page are fetched often
		}
		all = append(all, f)
	}
	now, before := r.Counter.Sum, r.Counter.Prior
	add(figureClicks, "Clicks", now.Total(), before.Total(), true)
	add(figurePeople, "People", now.People, before.People, true)
	if r.Visitors != nil {
		add(figureVisitors, "Visitors", *r.Visitors, 0, r.Chart.HasVisitors())
		all[len(all)-1].Before, all[len(all)-1].Change = nil, ""
	}
	add(figureBots, "Bots", now.Bots, before.Bots, true)
	if now.Imported > 0 {
		add(figureImported, "Imported", now.Imported, before.Imported, true)
	}
	r.Chart.Against = "No data for the " + r.Counter.Missing + " before"
	if r.Counter.Compared {
		r.Chart.Against = r.Chart.Name() + " " + r.Counter.Against
	}
	return all
}

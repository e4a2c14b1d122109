package dashboard

import (
	"slices"
	"strings"

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

// figureNamed returns the figure that a query names, clicks if no figure has that name.
func figureNamed(key string) string {
	if slices.Contains(figureKeys, key) {
		return key
	}
	return figureClicks
}

// figures returns the figures of a report that has been counted, and says in the chart what they are compared with.
func (p *reportPage) figures(asked clickreport.Request, r *clickReport) (all []figure) {
	now, before := clickreport.Count{Period: r.Counter.Sum, Visitors: r.Visitors},
		clickreport.Count{Period: r.Counter.Prior, Visitors: r.Counter.Visitors}
	r.Chart.Against = "No data for the " + r.Counter.Missing + " before"
	for _, key := range figureKeys {
		if key == figureVisitors && r.Visitors == nil || key == figureImported && now.Imported == 0 {
			continue
		}
		f := figure{Key: key, Name: figureNames[key], Count: figureOf(key, now), Current: key == r.Chart.Figure}
		if was := figureOf(key, before); r.Counter.Compared && (key != figureVisitors || before.Visitors != nil) {
			f.Before, f.Change = &was, r.Counter.change(f.Count, was)
		}
		if f.Current && f.Before != nil {
			r.Chart.Against = f.Name + " " + r.Counter.Against
			switch {
			case *f.Before == 0:
				r.Chart.Against = "No " + strings.ToLower(r.Chart.Against)
			case r.Chart.Ghost == "":
				r.Chart.Against += ": hours are not known"
			}
		}
		if key != figureVisitors || r.Chart.HasVisitors() {
			of := *p
			of.Form.Figure = key
			f.Path = of.pathOf("", asked, nil, asked.Limit) // short, as the parts of a page are fetched often
		}
		all = append(all, f)
	}
	return all
}

package dashboard

import (
	"context"
	"fmt"
	"math"
	"time"

	"linkstream/schema"
)

// overviewDays is the number of days in the overview's chart.
const overviewDays = 30

func (d *Dashboard) routeOverview() { d.get(Root, d.showOverview) }

// overviewPage is the data of the overview.
type overviewPage struct {
	Links  int64           // of the account
	Report *overviewReport // nil if the click store does not answer
	Live   string          // path of the part that the script polls
	Form   shortenForm     // shown while the account has no links

	Troubled []domainItem // domains whose records are missing, or that are lost
}

type overviewReport struct {
	Counters []counter
	Sum      sum
	Chart    chart
	Top      []topLink
	Progress progress
}

// counter compares the clicks of some days with those of the same number of days before.
type counter struct {
	Label   string
	Days    int
	Sum     sum
	Before  int64
	Against string // describes Before
}

// Change returns by how much the clicks grew or shrank. It is "" if the period is not over or has no predecessor.
func (c counter) Change() string {
	if c.Before == 0 || c.Days == 1 {
		return ""
	}
	change := math.Round(100 * float64(c.Sum.Total()-c.Before) / float64(c.Before))
	switch {
	case change > 0:
		return fmt.Sprintf("+%.0f %%", change)
	case change < 0:
		return fmt.Sprintf("−%.0f %%", -change)
	}
	return "±0 %"
}

// topLink is a link with its clicks relative to the first link's.
type topLink struct {
	linkView
	Share share
}

func (d *Dashboard) showOverview(c *call) error {
	_, total, err := d.DB.Links(c.ctx, c.account.ID, 1)
	if err != nil {
		return err
	}
	page := overviewPage{Links: total, Live: Root + "?part=" + partReport}
	if total == 0 {
		if page.Form, err = d.shortenForm(c); err != nil {
			return err
		}
		return d.render(c, "overview", page)
	}
	if page.Troubled, err = d.troubledDomains(c, time.Now()); err != nil {
		return err
	}
	if page.Report, err = d.overviewReport(c, time.Now()); err != nil {
		d.Log.Warn("page without clicks", "page", "overview", "error", err)
	}
	if c.query("part") == partReport {
		return d.renderPart(c, "overview", partReport, page)
	}
	return d.render(c, "overview", page)
}

func (d *Dashboard) overviewReport(c *call, now time.Time) (*overviewReport, error) {
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	first := today(now).AddDate(0, 0, 1-overviewDays)
	before, err := d.Reports.AccountReport(ctx, c.account.ID, first.AddDate(0, 0, -overviewDays))
	if err != nil {
		return nil, ofClicks(err)
	}
	recent, err := d.Reports.AccountReport(ctx, c.account.ID, first) // the same period, for the links
	if err != nil {
		return nil, ofClicks(err)
	}
	report := &overviewReport{Sum: sumOf(recent.Days), Chart: newChart(everyDay(recent.Days, first, today(now))),
		Counters: []counter{
			newCounter("Today", "yesterday", before.Days, now, 1),
			newCounter("7 days", "in the 7 days before", before.Days, now, 7),
			newCounter("30 days", "in the 30 days before", before.Days, now, 30),
		}}
	if report.Top, err = d.topLinks(c, recent.Links); err != nil {
		return nil, err
	}
	report.Progress = d.lag.progress(c.ctx)
	return report, nil
}

// newCounter counts the last n days, today included.
func newCounter(label, against string, days []schema.DayReport, now time.Time, n int) counter {
	c := counter{Label: label, Days: n, Against: against}
	last := today(now).Format(time.DateOnly)
	first := today(now).AddDate(0, 0, 1-n).Format(time.DateOnly)
	before := today(now).AddDate(0, 0, 1-2*n).Format(time.DateOnly)
	for _, day := range days {
		switch {
		case day.Date >= first && day.Date <= last:
			c.Sum.People += day.People
			c.Sum.Bots += day.Bots
		case day.Date >= before && day.Date < first:
			c.Before += day.People + day.Bots
		}
	}
	return c
}

// topLinks returns the counted links, most clicks first.
func (d *Dashboard) topLinks(c *call, counts []schema.LinkCount) ([]topLink, error) {
	if len(counts) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(counts))
	for i, count := range counts {
		ids[i] = count.LinkID
	}
	links, err := d.DB.LinksByID(c.ctx, c.account.ID, ids)
	if err != nil {
		return nil, err
	}
	byID := map[int64]schema.Link{}
	for _, link := range links {
		byID[link.ID] = link
	}
	var top []topLink
	for _, count := range counts {
		if link, ok := byID[count.LinkID]; ok {
			view := d.linkView(link)
			view.Clicks = count.Total
			top = append(top, topLink{view, newShare("", count.Total, counts[0].Total)})
		}
	}
	return top, nil
}

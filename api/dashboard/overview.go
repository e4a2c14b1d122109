package dashboard

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// overviewDays is the number of days in the overview's chart.
const overviewDays = 30

func (d *Dashboard) routeOverview() { d.get(Root, d.showOverview) }

// overviewPage is the data of the overview.
type overviewPage struct {
	Links  int64           // of the account
	Report *overviewReport // nil if the click store does not answer
	Form   shortenForm
	Made   *linkView // the link that the form has just created, or nil

	Troubled []domainItem     // domains whose records are missing, or that are lost
	Off      []schema.Webhook // webhooks that the service has switched off
}

func (p overviewPage) live() (part, path string, every time.Duration) {
	if p.Links == 0 {
		return partReport, "", 0
	}
	return partReport, Root + "?part=" + partReport, pollEvery(overviewDays)
}

type overviewReport struct {
	Counters []counter
	Sum      schema.Period
	Chart    chart
	Top      []topLink
	Ranked   string // the time of Top, if that is earlier than the page's
	Ranking  bool   // Top is not known yet
	Progress progress
}

// counter compares the clicks of some days with those of the same number of days before.
type counter struct {
	Label   string
	Days    int
	Sum     schema.Period
	Before  int64
	Against string // describes Before

	Compared bool // the account existed in the days before
}

// minCompared is the number of clicks from which on a percentage of them says something.
const minCompared = 10

// Change returns by how much the clicks grew or shrank. It is "" if the period is not over or cannot be compared.
func (c counter) Change() string {
	if !c.Compared || c.Before < minCompared || c.Days == 1 {
		return ""
	}
	change := math.Round(100 * float64(c.Sum.Total()-c.Before) / float64(c.Before))
	switch {
	case change >= 1000:
		return "×" + strconv.FormatInt(c.Sum.Total()/c.Before, 10)
	case change > 0:
		return fmt.Sprintf("+%.0f%%", change)
	case change < 0:
		return fmt.Sprintf("−%.0f%%", -change)
	}
	return "±0%"
}

// topLink is a link with its clicks relative to the first link's.
type topLink struct {
	linkView
	Share share
}

// topList is the data of the template "top".
type topList struct {
	Links  []topLink
	During string // follows the headings
}

func (d *Dashboard) showOverview(c *call) error {
	page, err := d.overview(c)
	if err != nil {
		return err
	}
	return d.renderLive(c, "overview", page)
}

func (d *Dashboard) overview(c *call) (page overviewPage, err error) {
	if _, page.Links, err = d.DB.Links(c.ctx, c.account.ID, schema.LinkFilter{}, 1); err != nil {
		return page, err
	}
	if page.Links > 0 {
		if page.Report, err = d.overviewReport(c, page.Links, c.now()); err != nil {
			d.warnWithout("overview", err)
		}
	}
	if c.query("part") == partReport {
		return page, nil
	}
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	if err != nil {
		return page, err
	}
	page.Troubled, page.Form = troubled(domains, time.Now()), d.shortenFormOf(c, Root, domains)
	hooks, err := d.DB.Webhooks(c.ctx, c.account.ID)
	if err != nil {
		return page, err
	}
	page.Off = slices.DeleteFunc(hooks, func(h schema.Webhook) bool { return h.OffReason == "" })
	page.Made, err = d.madeLink(c)
	return page, err
}

func (d *Dashboard) overviewReport(c *call, links int64, now time.Time) (*overviewReport, error) {
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	first := clickreport.AddDays(now, 1-overviewDays)
	q := schema.ReportQuery{AccountID: c.account.ID, Previous: clickreport.Bound(clickreport.AddDays(first, -overviewDays)), Limit: clickreport.DefaultTop,
		NoNames: true, TopLinks: links <= clickreport.RankedAtOnce}
	days, got, err := readDays(ctx, d.Clicks, q, first, now)
	if err != nil {
		return nil, ofClicks(err)
	}
	report := &overviewReport{Sum: sumOf(days), Chart: newChart(c.numbers(), c.zone(), days, c.account.CreatedAt),
		Counters: []counter{
			newCounter("Today", "yesterday", days, now, 1),
			newCounter("7 days", "in the previous 7 days", days, now, 7),
			newCounter("30 days", "in the previous 30 days", days, now, overviewDays),
		}}
	report.Counters[2].Before = got.Previous.Total()
	top := &clickreport.Ranking{Links: got.Links, Exact: true}
	if !q.TopLinks { // the ranking of an account with many links may be of an earlier time
		top = d.Rankings.Of(ctx, c.account.ID, first, report.Sum.Total())
	}
	for i := range report.Counters {
		report.Counters[i].compare(c.account.CreatedAt, now)
	}
	if report.Ranking = top == nil; !report.Ranking {
		if !top.Exact {
			report.Ranked = clock(top.At, now)
		}
		if report.Top, err = d.topLinks(c, top.Links); err != nil {
			return nil, err
		}
	}
	report.Progress = d.progress(c)
	return report, nil
}

// newCounter counts the last n days, today included, and those of the n days before that are among days.
func newCounter(label, against string, days []dayClicks, now time.Time, n int) counter {
	c := counter{Label: label, Days: n, Against: against}
	date := func(days int) string { return clickreport.AddDays(now, days).Format(time.DateOnly) }
	last, first, before := date(0), date(1-n), date(1-2*n)
	for _, day := range days {
		switch {
		case day.Date >= first && day.Date <= last:
			c.Sum.Add(day.Period)
		case day.Date >= before && day.Date < first:
			c.Before += day.Total()
		}
	}
	return c
}

// compare allows the comparison with the days before if the account existed then.
func (c *counter) compare(created, now time.Time) {
	c.Compared = !created.After(clickreport.AddDays(now, 1-2*c.Days))
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
			view.Clicks = c.numbers().number(count.Total)
			top = append(top, topLink{view, newShare("", count.Total, counts[0].Total)})
		}
	}
	return top, nil
}

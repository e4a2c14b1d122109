package dashboard

import (
	"context"
	"slices"
	"time"

	"linkstream/api/clickreport"
	"linkstream/api/request"
	"linkstream/schema"
)

const (
	overviewDays = 30 // in the chart
	recentLinks  = 10
)

func (d *Dashboard) routeOverview() {
	d.get(Root, request.Reads, d.showOverview)
}

// overviewPage is the data of the overview.
type overviewPage struct {
	Links  int64           // of the account
	Recent []linkView      // its newest links
	Report *overviewReport // nil if there are no links, or the click store does not answer
	Steps  *firstSteps     // nil if the account has taken them before
	API    string          // its URL

	Troubled []domainItem     // domains whose records are missing, or that are lost
	Off      []schema.Webhook // webhooks that the service has switched off
}

func (p overviewPage) live() (part, path string, every time.Duration) {
	return partReport, Root + "?part=" + partReport, pollEvery(overviewDays)
}

// firstSteps are what a new account does first: it creates a link, opens it, and sees the click.
type firstSteps struct {
	Link    *linkView // the newest; nil before the first step
	Clicked bool
}

// A new account sees its first steps until a click is counted, and that they are done for the rest of its first day.
const firstDay = 24 * time.Hour

func (p overviewPage) firstSteps(c *call) *firstSteps {
	if p.Links == 0 {
		return &firstSteps{}
	}
	age := c.now().Sub(c.account.CreatedAt)
	if p.Report == nil || age > overviewDays*firstDay || p.Report.Sum.Total() > 0 && age > firstDay {
		return nil
	}
	return &firstSteps{&p.Recent[0], p.Report.Sum.Total() > 0}
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

func (d *Dashboard) showOverview(c *call) error {
	page, err := d.overview(c)
	if err != nil {
		return err
	}
	return d.renderLive(c, "overview", page)
}

func (d *Dashboard) overview(c *call) (page overviewPage, err error) {
	newest, total, err := d.DB.Links(c.ctx, c.account.ID, schema.LinkFilter{}, 1)
	if err != nil {
		return page, err
	}
	page.Links, page.API = total, d.url.String()
	for _, link := range newest[:min(recentLinks, len(newest))] {
		page.Recent = append(page.Recent, d.linkView(link))
	}
	if page.Links > 0 {
		if page.Report, err = d.overviewReport(c, page.Links, c.now()); err != nil {
			d.warnWithout("overview", err)
		}
	}
	page.Steps = page.firstSteps(c)
	if c.query("part") == partReport {
		return page, nil
	}
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	if err != nil {
		return page, err
	}
	page.Troubled = troubled(domains, time.Now())
	hooks, err := d.DB.Webhooks(c.ctx, c.account.ID)
	if err != nil {
		return page, err
	}
	page.Off = slices.DeleteFunc(hooks, func(h schema.Webhook) bool { return h.OffReason == "" })
	return page, nil
}

func (d *Dashboard) overviewReport(c *call, links int64, now time.Time) (*overviewReport, error) {
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	first := clickreport.AddDays(now, 1-overviewDays)
	q := schema.ReportQuery{AccountID: c.account.ID, Limit: clickreport.DefaultTop,
		NoNames: true, TopLinks: links <= clickreport.RankedAtOnce}
	days, got, err := readDays(ctx, d.Clicks, q, first, now)
	if err != nil {
		return nil, ofClicks(err)
	}
	report := &overviewReport{Sum: sumOf(days),
		Chart: newChart(c.zone(), figureClicks, days, c.account.CreatedAt).withSources(got.Sources),
		Counters: []counter{
			newCounter("Today", days, now, 1), newCounter("7 days", days, now, 7),
			newCounter("30 days", days, now, overviewDays),
		}}
	var reports []clickreport.Request
	today := clickreport.DateOf(now)
	for _, n := range []int{1, 7, overviewDays} {
		reports = append(reports, clickreport.Request{From: today.AddDate(0, 0, 1-n), To: today, Zone: c.zone()})
	}
	if err := d.compare(ctx, c, nil, false, c.account.CreatedAt, report.Counters, reports...); err != nil {
		return nil, err
	}
	top := &clickreport.Ranking{Links: got.Links, Exact: true}
	if !q.TopLinks { // the ranking of an account with many links may be of an earlier time
		top = d.Rankings.Of(ctx, c.account.ID, first, report.Sum.Total())
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

func (p overviewPage) stream() string { return "" }

package dashboard

import (
	"context"
	"slices"
	"time"

	"linkstream/api/clickreport"
	"linkstream/api/request"
	"linkstream/schema"
)

// overviewDays is the number of days in the overview's chart.
const overviewDays = 30

func (d *Dashboard) routeOverview() {
	d.get(Root, request.Reads, d.showOverview)
	d.withForm[Root] = func(c *call) (string, any, error) {
		page, err := d.overview(c)
		return "overview", page, err
	}
}

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
	q := schema.ReportQuery{AccountID: c.account.ID, Limit: clickreport.DefaultTop,
		NoNames: true, TopLinks: links <= clickreport.RankedAtOnce}
	days, got, err := readDays(ctx, d.Clicks, q, first, now)
	if err != nil {
		return nil, ofClicks(err)
	}
	report := &overviewReport{Sum: sumOf(days),
		Chart: newChart(c.numbers(), c.zone(), days, c.account.CreatedAt).withSources(got.Sources),
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

// LinkFields gives the template the fields, as editPage does.
func (p overviewPage) LinkFields() linkFields { return p.Form.onHost(p.Form.Default) }

// HasMade is newPage.HasMade for this page.
func (p overviewPage) HasMade() bool { return p.Made != nil }

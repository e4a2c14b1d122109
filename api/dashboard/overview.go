package dashboard

import (
	"context"
	"fmt"
	"math"
	"slices"
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
	Form   shortenForm
	Made   *linkView // the link that the form has just created, or nil

	Troubled []domainItem // domains whose records are missing, or that are lost
}

func (p overviewPage) live() (part, path string, every time.Duration) {
	if p.Links == 0 {
		return partReport, "", 0
	}
	return partReport, Root + "?part=" + partReport, pollEvery(overviewDays)
}

type overviewReport struct {
	Counters []counter
	Sum      sum
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
	Sum     sum
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
		return "×" + number(c.Sum.Total()/c.Before)
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
	if _, page.Links, err = d.DB.Links(c.ctx, c.account.ID, 1); err != nil {
		return page, err
	}
	if page.Links > 0 {
		if page.Report, err = d.overviewReport(c, page.Links, time.Now()); err != nil {
			d.Log.Warn("page without clicks", "page", "overview", "error", err)
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
	page.Made, err = d.madeLink(c)
	return page, err
}

func (d *Dashboard) overviewReport(c *call, links int64, now time.Time) (*overviewReport, error) {
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	first := today(now).AddDate(0, 0, 1-overviewDays)
	days, top, err := d.overviewClicks(ctx, c.account.ID, links, first)
	if err != nil {
		return nil, ofClicks(err)
	}
	recent := daysSince(days, first)
	report := &overviewReport{Sum: sumOf(recent), Chart: newChart(everyDay(recent, first, today(now))),
		Counters: []counter{
			newCounter("Today, UTC", "yesterday", days, now, 1),
			newCounter("7 days", "in the 7 days before", days, now, 7),
			newCounter("30 days", "in the 30 days before", days, now, 30),
		}}
	for i := range report.Counters {
		report.Counters[i].compare(c.account.CreatedAt, now)
	}
	if report.Ranking = top == nil; !report.Ranking {
		report.Ranked = top.Clock()
		if report.Top, err = d.topLinks(c, top.links); err != nil {
			return nil, err
		}
	}
	report.Progress = d.lag.progress(c.ctx)
	return report, nil
}

// overviewClicks returns the clicks from overviewDays before a day on, and the links with the most clicks since that day. The ranking of an
// account with many links may be of an earlier time, or nil.
func (d *Dashboard) overviewClicks(ctx context.Context, accountID, links int64, first time.Time) ([]schema.DayReport, *topCounts, error) {
	before := first.AddDate(0, 0, -overviewDays)
	if links <= rankedAtOnce {
		got, err := d.Reports.AccountReport(ctx, accountID, before, first)
		return got.Days, &topCounts{links: got.Links, exact: true}, err
	}
	days, err := d.Reports.AccountDays(ctx, accountID, before)
	if err != nil {
		return nil, nil, err
	}
	return days, d.top.of(ctx, accountID, first, sumOf(daysSince(days, first)).Total()), nil
}

// daysSince returns the days from one on.
func daysSince(days []schema.DayReport, first time.Time) []schema.DayReport {
	return slices.DeleteFunc(slices.Clone(days), func(of schema.DayReport) bool { return of.Date < first.Format(time.DateOnly) })
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

// compare allows the comparison with the days before if the account existed then.
func (c *counter) compare(created, now time.Time) {
	c.Compared = !created.After(today(now).AddDate(0, 0, 1-2*c.Days))
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
			view.Clicks = number(count.Total)
			top = append(top, topLink{view, newShare("", count.Total, counts[0].Total)})
		}
	}
	return top, nil
}

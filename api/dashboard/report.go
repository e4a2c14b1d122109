package dashboard

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"linkstream/api/clickreport"
	"linkstream/api/request"
	"linkstream/schema"
)

// fieldCompare is the field of the period that a report is compared with. compareYear is the same days of the year
// before; the default is the period before.
const (
	fieldCompare = "compare"
	compareYear  = "year"
)

func (d *Dashboard) routeReports() {
	d.get(pathReport, request.Reads, d.showReport)
	d.get(pathLink, request.Reads, d.showReport)
	d.get(pathReport+".csv", request.Reads, d.downloadReport)
	d.get(pathLink+"/clicks.csv", request.Reads, d.downloadReport)
}

// reportPage is the data of the report of a link, or of all links of the account.
type reportPage struct {
	Link    *linkView // nil: all links
	Form    reportForm
	Presets []preset
	Filters []reportFilter
	Chips   []reportFilter // tag, domain and Filters
	Against []preset       // what the report can be compared with
	Report  *clickReport   // nil if the form has problems, or the click store does not answer
	Totals  *reportTotals  // nil if they were not asked for, or Report is nil
	File    string         // path of the series as a file
	Show    string         // path of the page with Totals; "" if it has them, or cannot
	Down    bool           // the click store does not answer
	Busy    string         // why there is no Report although the click store answers; "" otherwise
	Self    string         // path of this page
	Fields  url.Values     // of its query, to which buttons add
	Poll    time.Duration
	Share   *sharedPart // nil unless the page is for readers of a shared report
	ShareAt string      // path of the form that shares the report
}

func (p reportPage) live() (part, path string, every time.Duration) {
	if p.Report == nil || p.Share != nil {
		return partReport, "", 0
	}
	return partReport, p.Self + "&part=" + partReport, p.Poll
}

// Custom reports whether the period differs from every preset.
func (p reportPage) Custom() bool {
	return !slices.ContainsFunc(p.Presets, func(one preset) bool { return one.Current })
}

// since is the earliest time of a click.
func (p reportPage) since(c *call) time.Time {
	if p.Link != nil {
		return p.Link.CreatedAt
	}
	return c.account.CreatedAt
}

// Narrowed reports whether links of the account may be left out.
func (p reportPage) Narrowed() bool { return p.Form.Tag+p.Form.Domain != "" }

// clickReport is the content of a report.
type clickReport struct {
	First    string // day
	Last     string // day
	Counter  counter
	Visitors *int64 // nil if they are not known
	Figures  []figure
	Nothing  string // why there are no clicks, if the reader may have mistyped something; "" otherwise
	Chart    chart
	Cards    []reportCard
	Progress progress
	Ever     int64 // all clicks of the link
}

// showReport shows the page of the link that the path names, which is its report, or the report of the account.
func (d *Dashboard) showReport(c *call) error {
	page, err := d.newReportPage(c)
	if err != nil {
		return err
	}
	asked, some, invalid, err := page.ask(c)
	if inStore := new(storeError); errors.As(err, &inStore) {
		return d.reportWithout(c, page, asked, err)
	}
	if err != nil {
		return err
	}
	page.fill(c, asked)
	if len(invalid) > 0 {
		return d.invalid(c, "report", page, reportProblems(invalid))
	}
	if page.Form.Totals && c.query("part") == partTotals {
		return d.showTotals(c, page, asked, some)
	}
	if page.Report, err = d.clickReport(c, page, asked, some); err != nil {
		return d.reportWithout(c, page, asked, err)
	}
	if page.Form.Totals && c.query("part") == "" {
		if page.Totals, err = d.reportTotals(c, page, asked, some); err != nil {
			return d.reportWithout(c, page, asked, err)
		}
	}
	return d.renderLive(c, "report", page)
}

// newReportPage returns the page for the path of a request.
func (d *Dashboard) newReportPage(c *call) (page reportPage, err error) {
	if c.share != nil {
		return d.sharedReport(c)
	}
	page.Form.Action = pathReport
	if c.http.UserValue("hash") != nil {
		var link linkView
		if link, err = d.ownLink(c); err == nil {
			links := []linkView{link}
			d.addChips(c, links)
			page.Link, page.Form.Action = &links[0], link.Path
		}
	}
	return page, err
}

// ask reads the query: the report, and the links that it is about, nil for all. err is an error of a store.
func (p *reportPage) ask(c *call) (asked clickreport.Request, some []int64, invalid map[string][]string, err error) {
	args, zone := c.http.QueryArgs(), cmp.Or(c.query(clickreport.FieldZone), c.zone().String())
	value := func(field string) (string, bool) {
		if field == clickreport.FieldZone {
			return zone, true
		}
		if value, is := p.Form.Period.fields[field]; is {
			return value, true
		}
		value := c.query(field)
		if field == clickreport.FieldTag {
			value = schema.Fold(value)
		}
		filter := slices.Contains(schema.Dimensions(), schema.Dimension(field))
		return value, args.Has(field) && (filter || value != "") // an empty field of the form is one that was left out
	}
	p.Form.ByYear, p.Form.Figure = c.query(fieldCompare) == compareYear, figureNamed(c.query(fieldShow))
	p.choosePeriod(c, clickreport.DateOf(c.now()))
	asked, invalid = clickreport.Parse(value, c.now())
	if some, err = p.selectLinks(c, value, invalid); err != nil || len(invalid) > 0 {
		return asked, some, invalid, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	if invalid, err = asked.CheckDetail(ctx, c.dashboard.Clicks); err != nil {
		return asked, some, nil, ofClicks(err)
	}
	if len(invalid[clickreport.FieldZone]) > 0 { // clicks of so long ago are known by UTC day only
		delete(invalid, clickreport.FieldZone)
		zone = time.UTC.String()
		asked, _ = clickreport.Parse(value, c.now())
	}
	return asked, some, invalid, nil
}

// selectLinks reads the fields that select links of the account. It adds what is wrong with them to invalid.
func (p *reportPage) selectLinks(
	c *call, value func(string) (string, bool), invalid map[string][]string,
) (some []int64, err error) {
	d := c.dashboard
	switch {
	case p.Link != nil:
		return nil, nil
	case p.Share != nil:
		return d.selectShared(c)
	}
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	if err != nil {
		return nil, err
	}
	tag, _ := value(clickreport.FieldTag)
	p.Form.Tag, p.Form.Domain = cut(tag, maxAsked), cut(c.query(clickreport.FieldDomain), maxAsked)
	p.Form.Totals = c.query(fieldTotals) == "show"
	p.Form.Domains = d.domainOptions(p.Form.Domain, verified(domains))
	some, wrong, err := clickreport.SelectLinks(c.ctx, d.DB, c.account.ID, value)
	maps.Copy(invalid, wrong)
	return some, err
}

// reportWithout shows the page without a report, because of err.
func (d *Dashboard) reportWithout(c *call, page reportPage, asked clickreport.Request, err error) error {
	d.warnWithout("report", err)
	page.fill(c, asked)
	page.Report, page.Busy = nil, clientMessage(err, schema.CodeBusy)
	page.Down = page.Busy == ""
	return d.render(c, "report", page)
}

// clickReport asks the click store. some are the links that were asked for, nil for all.
func (d *Dashboard) clickReport(
	c *call, page reportPage, asked clickreport.Request, some []int64,
) (*clickReport, error) {
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	var got clickreport.Result
	var err error
	wide := asked
	wide.Limit = max(asked.Limit, namesRead)
	if page.Link != nil {
		got, err = wide.OfLink(ctx, d.Clicks, page.Link.Link)
	} else {
		got, err = wide.OfAccount(ctx, d.Clicks, c.account.ID, some)
	}
	if err != nil {
		return nil, ofClicks(err)
	}
	report := &clickReport{Visitors: got.Totals.Visitors, First: page.Form.From, Last: page.Form.To,
		Progress: d.progress(c)}
	if page.Link != nil {
		counts, err := d.Clicks.Of(c.account.ID).ClickCounts(ctx, []int64{page.Link.ID})
		if err != nil {
			return nil, ofClicks(err)
		}
		report.Ever, some = counts[page.Link.ID], []int64{page.Link.ID}
	}
	counters := []counter{{Sum: got.Totals.Period}}
	if err := d.compare(ctx, c, some, page.Form.ByYear, page.since(c), counters, asked); err != nil {
		return nil, err
	}
	if report.Counter = counters[0]; report.Counter.Sum.Total() == 0 {
		report.Nothing = page.nothing(some)
	}
	report.Chart = newChart(asked.Zone, page.Form.Figure,
		report.Counter.beside(pointsOf(got.Series, asked.Interval)), page.since(c)).withSources(got.Sources)
	report.Figures = page.figures(asked, report)
	week, err := asked.Week(ctx, d.Clicks, c.account.ID, some)
	if err != nil {
		return nil, ofClicks(err)
	}
	report.Cards, err = page.cards(c, asked, got, week)
	return report, err
}

// setPaths makes links lead to their reports of the same time and clicks; in a shared report, they lead nowhere.
func (p *reportPage) setPaths(links []topLink, share *schema.Share, asked clickreport.Request) {
	ofLink := *p
	ofLink.Form.Tag, ofLink.Form.Domain, ofLink.Form.Totals = "", "", false
	for i := range links {
		switch link := &links[i]; {
		case share == nil:
			link.Path = ofLink.pathOf(link.Path, asked, nil, asked.Limit)
		case share.HideTargets:
			link.Path, link.URL = "", ""
		default:
			link.Path = ""
		}
	}
}

// nothing says why a report of some links has no click: the name of a filter, or a tag, may be misspelt.
func (p *reportPage) nothing(some []int64) string {
	if p.Share != nil {
		some = nil // readers know nothing of the account
	}
	switch tag := "the tag “" + p.Form.Tag + "”"; {
	case some != nil && len(some) == 0 && p.Form.Tag == "":
		return "You have no link on this domain."
	case some != nil && len(some) == 0 && p.Form.Domain == "":
		return "You have no link with " + tag + "."
	case some != nil && len(some) == 0:
		return "You have no link with " + tag + " on this domain."
	case len(p.Filters) == 0:
		return ""
	}
	var names []string
	for _, f := range p.Filters {
		names = append(names, "“"+f.Name+"”")
	}
	return "No clicks in this period match " + strings.Join(names, " and ") + "."
}

// pointsOf returns the periods of a series as the chart takes them.
func pointsOf(series []clickreport.Point, interval clickreport.Interval) []dayClicks {
	layout := time.DateOnly
	if interval == clickreport.Hour {
		layout = hourLayout
	}
	points := make([]dayClicks, len(series))
	for i, p := range series {
		points[i] = dayClicks{Date: p.At.Format(layout), Count: p.Count}
	}
	return points
}

// ranking lists the names of a dimension. Each filters the report by it. Bots are the last of the devices.
func (p *reportPage) ranking(
	asked clickreport.Request, by schema.Dimension, names []schema.NameCount, all schema.Period,
) ranking {
	words := clickreport.WordsOf(by)
	if by == schema.ByDevice {
		names = slices.DeleteFunc(slices.Clone(names), func(n schema.NameCount) bool { return n.Name == string(schema.Bot) })
	}
	if words.Unknown != "" && len(names) == 1 && names[0].Name == "" {
		return ranking{Title: words.Title, Hint: words.Unknown}
	}
	n := len(names)
	names = names[:rowsOf(asked, n)]
	r := newRanking(words.Title, names, all.People, shownNames(by, names))
	for i, name := range names {
		r.Rows[i].By, r.Rows[i].Raw = string(by), name.Name
	}
	if _, filtered := asked.Filter[by]; !filtered {
		for i, name := range names {
			r.Rows[i].Field, r.Rows[i].Value = string(by), name.Name
		}
	}
	if by == schema.ByDevice && all.Bots > 0 {
		row := newShare("Bots (of all clicks)", all.Bots, all.Total())
		row.Bots = true
		r.Rows = append(r.Rows, row)
	}
	r.List = string(by)
	if p.Share == nil {
		r.File, r.All = p.file(), allOf(asked, n, words.Title)
	}
	return r
}

func (p reportPage) stream() string {
	if p.Link == nil {
		return ""
	}
	return strconv.FormatInt(p.Link.ID, 10)
}

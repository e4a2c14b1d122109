package dashboard

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/clickreport"
	"linkstream/api/csvfile"
	"linkstream/schema"
)

// fieldList names the list of a report that a file has; without it, the file has the series.
const fieldList = "list"

// file returns the path of the report's files.
func (p *reportPage) file() string {
	if p.Link != nil {
		return p.Link.Path + "/clicks.csv"
	}
	return pathReport + ".csv"
}

// downloadReport answers with the series of a report, or with one of its lists, as CSV.
func (d *Dashboard) downloadReport(c *call) error {
	page, err := d.newReportPage(c)
	if err != nil {
		return err
	}
	asked, some, invalid, err := page.ask(c)
	list := c.query(fieldList)
	if list != "" {
		asked.Limit = clickreport.MaxTop
	}
	if len(invalid) > 0 {
		why := slices.Concat(slices.Collect(maps.Values(invalid))...)
		return &failure{fasthttp.StatusUnprocessableEntity, "This report cannot be made",
			strings.Join(slices.Sorted(slices.Values(why)), " ")}
	}
	if err != nil {
		return err
	}
	var got clickreport.Result
	if page.Link != nil {
		got, err = asked.OfLink(c.ctx, d.Clicks, page.Link.Link)
	} else {
		got, err = asked.OfAccount(c.ctx, d.Clicks, c.account.ID, some)
	}
	if err != nil {
		return ofClicks(err)
	}
	name := "report"
	if page.Link != nil {
		name = page.Link.fileName("")
	}
	by := schema.Dimension(list)
	part := slices.IndexFunc(campaignParts, func(p campaignPart) bool { return p.list == list })
	if part >= 0 {
		by = schema.ByCampaign
		got.Names[by], _ = byPart(got.Names[by], part)
	}
	if list != "" && !slices.Contains(schema.Dimensions(), by) {
		return errNoPage
	}
	if list != "" {
		name += "-" + list
	}
	c.attach(name+"-"+asked.From.Format(time.DateOnly)+"-"+asked.To.Format(time.DateOnly)+".csv",
		"text/csv; charset=utf-8; header=present")
	if list != "" {
		return writeNames(c.http, list, clickreport.WordsOf(by), got.Names[by])
	}
	return writeCSV(c.http, pointsOf(got.Series, asked.Interval))
}

// writeCSV writes a header and a line per day. No cell holds text of users or visitors, so none can be a spreadsheet
// formula.
func writeCSV(w io.Writer, days []dayClicks) error {
	out := csv.NewWriter(w)
	lines := [][]string{{csvfile.BOM + "date", "people", "bots", "total", "visitors"}}
	imported := sumOf(days).Imported > 0
	if imported {
		lines[0] = append(lines[0], "imported")
	}
	for _, day := range days {
		visitors := "" // unknown
		if day.Visitors != nil {
			visitors = strconv.FormatInt(*day.Visitors, 10)
		}
		lines = append(lines, []string{day.Date, strconv.FormatInt(day.People, 10), strconv.FormatInt(day.Bots, 10),
			strconv.FormatInt(day.Total(), 10), visitors})
		if last := len(lines) - 1; imported {
			lines[last] = append(lines[last], strconv.FormatInt(day.Imported, 10))
		}
	}
	return out.WriteAll(lines)
}

// writeNames writes a header and a line per name, most frequent first, with the clicks of people.
func writeNames(w io.Writer, list string, words clickreport.Words, names []schema.NameCount) error {
	lines := [][]string{{csvfile.BOM + list, "people"}}
	for _, name := range names {
		lines = append(lines, []string{csvfile.Guard(words.Shown(name.Name)), strconv.FormatInt(name.Total, 10)})
	}
	return csv.NewWriter(w).WriteAll(lines)
}

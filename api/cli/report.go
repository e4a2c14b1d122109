package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linkstream/api/client"
)

// filters are the parameters of reports that name a dimension.
var filters = []string{"device", "browser", "os", "language", "referrer", "country", "route", "campaign", "path"}

// barColumns is the length of the longest bar of a chart.
const barColumns = 50

// report is a report of a link or of several.
type report struct {
	client.AccountReport
	Hash string `json:"hash"`
}

func (c *command) reportCommand() *cobra.Command {
	cmd := aboutLinks("report [HASH]", "Report the clicks of a link, or of all", cobra.MaximumNArgs(1), c.report)
	cmd.Long = `Report the clicks of a link, or of all: on a terminal as a chart, else as lines with a list, a name and a
number. The periods and the lists of names count people, without bots.`
	flags := cmd.Flags()
	flags.String("from", "", "the first `day`, such as 2030-01-31; without it, the report has 30 days")
	flags.String("to", "", "the last `day`; without it, today")
	flags.String("tz", "", "the time `zone` of the days, such as Europe/Berlin; without it, UTC")
	flags.String("interval", "", "the `length` of periods: day or hour")
	flags.Int("limit", 0, "the `number` of names in each list")
	flags.String("tag", "", "only links with this `tag`")
	for _, name := range filters {
		flags.String(name, "", "only clicks with this `"+name+"`")
	}
	return cmd
}

func (c *command) report(cmd *cobra.Command, args []string) error {
	api, ask, err := c.connectFor(cmd, append(filters, "from", "to", "tz", "interval", "limit", "tag")...)
	if err != nil {
		return err
	}
	var resp *http.Response
	if len(args) == 0 {
		resp, err = api.AccountReport(cmd.Context(), nil, ask)
	} else {
		resp, err = api.LinkReport(cmd.Context(), args[0], nil, ask)
	}
	return answer(c, resp, err, c.printReport)
}

func (c *command) printReport(r report) error {
	lists := []struct {
		name  string
		names []client.NameClicks
	}{
		{"device", r.Devices}, {"browser", r.Browsers}, {"os", r.Os}, {"language", r.Languages},
		{"referrer", r.Referrers}, {"country", r.Countries}, {"route", r.Routes}, {"campaign", r.Campaigns},
		{"path", r.Paths},
	}
	now, before := totals(r.Totals), totals(r.Previous)
	var rows [][]string
	if c.terminal {
		err := c.print(fmt.Sprintf("%s  %s to %s, %s\n\n", cell(cmp.Or(r.Hash, "all links")), r.From, r.To, cell(r.Tz)))
		for i := range now {
			rows = append(rows, []string{now[i][1], now[i][2], "(" + before[i][2] + " before)"})
		}
		if err = cmp.Or(err, c.table(nil, rows), c.print("\n"+chart(r))); err != nil {
			return err
		}
		rows = nil
	} else {
		rows = append(now, periods(r)...)
	}
	for _, list := range lists {
		for _, n := range list.names {
			rows = append(rows, []string{list.name, cmp.Or(n.Name, "-"), strconv.FormatInt(n.Clicks, 10)})
		}
	}
	for _, l := range r.Links {
		rows = append(rows, []string{"link", l.Hash, strconv.FormatInt(l.Clicks, 10)})
	}
	return c.table(nil, rows)
}

func totals(t client.ReportTotals) [][]string {
	visitors := "-"
	if n, err := t.Visitors.Get(); err == nil { // it is not null
		visitors = strconv.FormatInt(n, 10)
	}
	rows := [][]string{{"total", "clicks", strconv.FormatInt(t.Clicks, 10)},
		{"total", "people", strconv.FormatInt(t.People, 10)}, {"total", "bots", strconv.FormatInt(t.Bots, 10)},
		{"total", "visitors", visitors}}
	if t.Imported != nil {
		rows = append(rows, []string{"total", "imported", strconv.FormatInt(*t.Imported, 10)})
	}
	return rows
}

// periods returns a row for each period of a report.
func periods(r report) [][]string {
	rows := make([][]string, len(r.Series))
	for i, p := range r.Series {
		at := p.At.Format(time.DateOnly)
		if r.Interval != "day" {
			at = p.At.Format("2006-01-02 15:04")
		}
		rows[i] = []string{string(r.Interval), at, strconv.FormatInt(p.People, 10)}
	}
	return rows
}

// chart returns a bar for each period of a report.
func chart(r report) string {
	most := int64(1)
	for _, p := range r.Series {
		most = max(most, p.People)
	}
	var text strings.Builder
	for i, row := range periods(r) {
		people := r.Series[i].People
		columns := int(people * barColumns / most)
		if people > 0 && columns == 0 {
			columns = 1
		}
		fmt.Fprintf(&text, "%s  %s %s\n", row[1], strings.Repeat("█", columns), row[2])
	}
	return text.String() + "\n"
}

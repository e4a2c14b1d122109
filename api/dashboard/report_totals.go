package dashboard

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"linkstream/api/clickreport"
)

// fieldTotals asks for the totals of a report, and partTotals for them alone.
const (
	fieldTotals = "totals"
	partTotals  = "totals"
)

// reportTotals are the clicks of a report by domain and by tag. They are counted when somebody asks for them and not
// polled, since they read all links that have clicks.
type reportTotals struct{ Tags, Domains ranking }

// showTotals answers with the totals alone, which the script adds to the page.
func (d *Dashboard) showTotals(c *call, page reportPage, asked clickreport.Request, some []int64) (err error) {
	if page.Totals, err = d.reportTotals(c, page, asked, some); err != nil {
		return err
	}
	html, err := d.html("report", partTotals, d.view(c, page, nil))
	if err == nil {
		c.answer(fasthttp.StatusOK, html)
	}
	return err
}

// reportTotals counts the clicks of the links that were asked for, of all if some is nil.
func (d *Dashboard) reportTotals(
	c *call, page reportPage, asked clickreport.Request, some []int64,
) (*reportTotals, error) {
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	counts, all, err := asked.ByLink(ctx, d.Clicks, c.account.ID, some)
	if err != nil {
		return nil, ofClicks(err)
	}
	clicks, ids := make(map[int64]int64, len(counts)), make([]int64, len(counts))
	rest := all // of links beyond those that are counted one by one
	for i, count := range counts {
		ids[i], clicks[count.LinkID] = count.LinkID, count.Total
		rest -= count.Total
	}
	links, err := d.DB.LinksByID(c.ctx, c.account.ID, ids)
	if err != nil {
		return nil, err
	}
	domains, tags, names := map[string]int64{}, map[string]int64{}, map[string]string{}
	for _, link := range links {
		n := clicks[link.ID]
		delete(clicks, link.ID)
		domain := strconv.FormatInt(link.DomainID, 10)
		domains[domain] += n
		names[domain] = strings.TrimSuffix(d.linkView(link).Prefix, "/")
		for _, tag := range link.Tags {
			tags[tag] += n
		}
		if len(link.Tags) == 0 {
			tags[""] += n
		}
	}
	deleted := int64(0)
	for _, n := range clicks { // what is left
		deleted += n
	}
	totals := &reportTotals{
		Domains: page.totals(asked, "Domains", clickreport.FieldDomain, domains, all,
			func(id string) string { return names[id] }),
		Tags: page.totals(asked, "Tags", clickreport.FieldTag, tags, all, orElse("No tag")),
	}
	if deleted > 0 {
		totals.Domains.Rows = append(totals.Domains.Rows, newShare("Deleted links", deleted, all))
	}
	if rest > 0 {
		totals.Domains.Rows = append(totals.Domains.Rows, newShare("Links with fewer clicks", rest, all))
	}
	totals.Tags.Hint = "People and bots, as of now. A click counts for each tag of its link."
	totals.Domains.Hint = "People and bots, as of now."
	return totals, nil
}

// totals returns the clicks by the values of a field of the form, the most first. Each row narrows the report to its
// links.
func (p *reportPage) totals(
	asked clickreport.Request, title, field string, clicks map[string]int64, all int64, show func(value string) string,
) ranking {
	values := slices.SortedFunc(maps.Keys(clicks), func(a, b string) int {
		return cmp.Or(cmp.Compare(clicks[b], clicks[a]), cmp.Compare(a, b))
	})
	r := ranking{Title: title, List: field, Fields: p.fields(asked)}
	r.Fields.Del(field)
	r.All = allOf(asked, len(values), title)
	for _, value := range values[:rowsOf(asked, len(values))] {
		row := newShare(show(value), clicks[value], all)
		if value != "" {
			row.Field, row.Value = field, value
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

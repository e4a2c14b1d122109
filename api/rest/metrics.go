package rest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// metricsType is the media type of OpenMetrics (https://prometheus.io/docs/specs/om/open_metrics_spec/).
const metricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

const metricsHead = `# TYPE linkstream_link_clicks counter
# HELP linkstream_link_clicks Clicks of a link since its creation, by people and by bots.
`

// labelText escapes the value of a label.
var labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// accountMetrics answers GET /api/v1/metrics. Counts are read each time, so that they never fall from one answer to the
// next, whichever api gives it: readers would take that for a new start of the counter. Only the choice of links of a
// large account is older.
func (a *API) accountMetrics(c *call) error {
	found, err := a.metricLinks(c)
	if err != nil {
		return err
	}
	ids := make([]int64, len(found))
	for i, link := range found {
		ids[i] = link.ID
	}
	clicks, err := a.clicks.Of(c.account).ClickTotals(c.ctx, ids)
	if err != nil {
		return withOutage(readingClicks, err)
	}
	var out bytes.Buffer
	out.WriteString(metricsHead)
	for _, link := range found {
		host, sum := link.Host, clicks[link.ID]
		if link.DomainID == 0 {
			host = string(a.shortener.Base().Host())
		}
		for _, kind := range []struct {
			name  string
			count int64
		}{{"people", sum.People}, {"bots", sum.Bots}} {
			fmt.Fprintf(&out, "linkstream_link_clicks_total{hash=\"%s\",domain=\"%s\",kind=\"%s\"} %d\n",
				labelText.Replace(link.Hash), labelText.Replace(host), kind.name, kind.count)
		}
	}
	out.WriteString("# EOF\n")
	c.http.SetStatusCode(fasthttp.StatusOK)
	c.http.SetContentType(metricsType)
	c.http.Response.SetBodyRaw(out.Bytes())
	return nil
}

// metricLinks returns the links whose clicks are metrics: all of them, or of more than clickreport.TopLinks the links
// with the most clicks in 30 days. If fewer have clicks, the newest other links follow.
func (a *API) metricLinks(c *call) ([]schema.Link, error) {
	ids, err := a.links.LinkIDs(c.ctx, c.account, schema.LinkFilter{}, clickreport.TopLinks+1) // newest first
	if err != nil {
		return nil, withOutage(readingLinks, err)
	}
	if len(ids) > clickreport.TopLinks {
		top, err := a.rankings.Top(c.ctx, c.account, time.Now())
		if err != nil {
			return nil, withOutage(readingClicks, err)
		}
		ids = firstOf(clickreport.TopLinks, top, ids)
	}
	found, err := a.links.LinksByID(c.ctx, c.account, ids) // without links that were deleted meanwhile
	return found, withOutage(readingLinks, err)
}

// firstOf returns the first n different elements of lists.
func firstOf(n int, lists ...[]int64) (all []int64) {
	seen := map[int64]bool{}
	for _, list := range lists {
		for _, id := range list {
			if len(all) < n && !seen[id] {
				seen[id] = true
				all = append(all, id)
			}
		}
	}
	return all
}

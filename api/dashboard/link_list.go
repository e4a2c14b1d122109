package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// linksPage is the data of the list of links.
type linksPage struct {
	Links []linkView
	linkFilter
	pager
	Wrong    problems // of the filter
	Self     string   // path of this page
	NoClicks bool     // the click store does not answer
	Progress progress

	Domains, States []option // of the filter
}

func (p linksPage) live() (part, path string, every time.Duration) {
	if len(p.Links) == 0 {
		return partLinks, "", 0
	}
	return partLinks, p.Self + "&part=" + partLinks, pollOften
}

// counts implements countsPage.
func (p linksPage) counts() []byte {
	b := fmt.Appendf(nil, "%+v on %s\n", p.Progress.Progress, clickreport.DateOf(p.Progress.now))
	for _, link := range p.Links {
		b = fmt.Appendln(b, link.ID, link.Clicks)
	}
	return b
}

func (d *Dashboard) listLinks(c *call) error {
	page, err := d.linksPage(c)
	if err != nil {
		return err
	}
	if len(page.Wrong) > 0 {
		return d.invalid(c, "links", page, page.Wrong)
	}
	return d.renderLive(c, "links", page)
}

func (d *Dashboard) linksPage(c *call) (page linksPage, err error) {
	page.linkFilter, page.Page = filterOf(c.query), c.page()
	return page, d.fillLinksPage(c, &page)
}

// fillLinksPage fills in the page of the list that Query and Page name.
func (d *Dashboard) fillLinksPage(c *call, page *linksPage) (err error) {
	var links []schema.Link
	links, page.Total, err = d.filteredLinks(c, page)
	if p, invalid := problemsOf(err); invalid {
		page.Wrong, err = p, nil
	}
	if err != nil {
		return err
	}
	page.Self = page.address(page.Page)
	page.turn(page.size(), page.address)
	page.Sizes = page.sizes(pathLinks)
	if page.Links, err = d.withClicks(c, links); err != nil {
		d.warnWithout("links", err)
		page.NoClicks = true
	}
	page.Progress = d.progress(c)
	if c.query("part") == partLinks {
		return nil
	}
	if !page.NoClicks && len(page.Links) > 0 { // without clicks the page has waited long enough
		if err := d.addDays(c, page.Links); err != nil {
			d.warnWithout("links", err)
		}
	}
	d.addChips(c, page.Links)
	for i, link := range page.Links {
		if !link.ExpiresAt.IsZero() && !link.Expired() {
			when := timeElement(link.ExpiresAt.In(c.zone()))
			page.Links[i].Chips = append(link.Chips, linkChip{"timer", "ends ", when})
		}
	}
	page.States = stateOptions(page.State)
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	page.Domains = d.domainOptions(page.Domain, verified(domains))
	return err
}

// withClicks returns the links with their clicks. If it returns an error, their clicks are a dash.
func (d *Dashboard) withClicks(c *call, links []schema.Link) ([]linkView, error) {
	views, ids := make([]linkView, len(links)), make([]int64, len(links))
	for i, link := range links {
		views[i], ids[i] = d.linkView(link), link.ID
	}
	if len(ids) == 0 {
		return views, nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	counts, err := d.Clicks.Of(c.account.ID).ClickCounts(ctx, ids)
	for i := range views {
		if views[i].Clicks = "–"; err == nil {
			views[i].Clicks = number(counts[views[i].ID])
		}
	}
	return views, ofClicks(err)
}

const (
	sparkDays   = 14
	sparkHeight = 20
)

func sparkOf(clicks []int64) (s spark) {
	most, before := max(1, slices.Max(clicks)), int64(0)
	for day, n := range clicks {
		s.Total += n
		y := 2 + sparkHeight - n*sparkHeight/most
		if day == 0 {
			s.Path = fmt.Sprintf("M1 %dl", y)
		} else {
			s.Path += fmt.Sprintf("4 %d ", y-before)
		}
		before = y
	}
	s.Path = strings.ReplaceAll(strings.TrimSpace(s.Path), " -", "-")
	return s
}

// addDays adds the clicks of the last days to links.
func (d *Dashboard) addDays(c *call, links []linkView) error {
	ids, today := make([]int64, len(links)), clickreport.DateOf(c.now())
	for i, link := range links {
		ids[i] = link.ID
	}
	bounds := clickreport.Request{From: today.AddDate(0, 0, 1-sparkDays), To: today, Zone: c.zone()}.Bounds()
	for i, at := range bounds {
		bounds[i] = clickreport.Bound(at)
	}
	ctx, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	series, err := d.Clicks.ClickSeries(ctx, c.account.ID, ids, bounds)
	for i, link := range links {
		if clicks := series[link.ID]; err == nil && clicks != nil {
			links[i].Days = sparkOf(clicks)
		}
	}
	return ofClicks(err)
}

func (p linksPage) stream() string { return "" }

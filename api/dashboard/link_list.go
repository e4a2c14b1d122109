package dashboard

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"linkstream/api/shorten"
	"linkstream/schema"
)

// clicksTimeout bounds how long a page waits for clicks that it can do without.
const clicksTimeout = 3 * time.Second

// maxAsked bounds how many characters of an invalid form field the page repeats.
const maxAsked = 3 * schema.MaxURLLen

// linksPage is the data of the list of links.
type linksPage struct {
	Links      []linkView
	Query      string
	Total      int64 // links that match Query; all links if it is ""
	Page, Last int64
	Previous   string // path; "" on the first page
	Next       string
	Self       string // path of this page
	Live       string // path of the part that the script polls
	NoClicks   bool   // the click store does not answer
	Progress   progress

	Form shortenForm
}

// shortenForm is the data of the form that creates a link.
type shortenForm struct {
	LongURL, Alias string
	DomainID       int64
	Domains        []schema.Domain // verified ones
	Default        string          // the default domain
}

func (d *Dashboard) listLinks(c *call) error {
	page, err := d.linksPage(c)
	if err != nil {
		return err
	}
	if c.query("part") == partLinks {
		return d.renderPart(c, "links", partLinks, page)
	}
	return d.render(c, "links", page)
}

func (d *Dashboard) linksPage(c *call) (page linksPage, err error) {
	page.Query, page.Page = c.query("q"), c.page()
	var links []schema.Link
	if page.Query == "" {
		links, page.Total, err = d.DB.Links(c.ctx, c.account.ID, page.Page)
	} else {
		links, page.Total, err = d.DB.SearchLinks(c.ctx, c.account.ID, page.Query, page.Page)
	}
	if err != nil {
		return page, err
	}
	page.turn()
	if page.Links, err = d.withClicks(c, links); err != nil {
		d.Log.Warn("page without clicks", "page", "links", "error", err)
		page.NoClicks = true
	}
	page.Progress = d.lag.progress(c.ctx)
	page.Form, err = d.shortenForm(c)
	return page, err
}

// turn sets the paths of this page and its neighbours.
func (p *linksPage) turn() {
	p.Last = max(1, (p.Total+schema.PageSize-1)/schema.PageSize)
	p.Self = p.address(p.Page)
	p.Live = p.Self + "&part=" + partLinks
	if p.Page > 1 {
		p.Previous = p.address(min(p.Page-1, p.Last))
	}
	if p.Page < p.Last {
		p.Next = p.address(p.Page + 1)
	}
}

func (p *linksPage) address(page int64) string {
	values := url.Values{"page": {strconv.FormatInt(page, 10)}}
	if p.Query != "" {
		values.Set("q", p.Query)
	}
	return pathLinks + "?" + values.Encode()
}

// withClicks returns the links with their clicks. If it returns an error, the links have no clicks.
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
	counts, err := d.Clicks.ClickCounts(ctx, ids)
	for i := range views {
		views[i].Clicks = counts[views[i].ID]
	}
	return views, ofClicks(err)
}

// shortenForm returns the empty form.
func (d *Dashboard) shortenForm(c *call) (form shortenForm, err error) {
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	for _, domain := range domains {
		if !domain.VerifiedAt.IsZero() {
			form.Domains = append(form.Domains, domain)
		}
	}
	form.Default = strings.TrimSuffix(d.linkView(schema.Link{}).Name(), "/")
	return form, err
}

// createLink creates a link by the API's rules, for which tokens have a rate limit of their own. An empty optional field counts as absent.
func (d *Dashboard) createLink(c *call) error {
	req := shorten.Request{AccountID: c.account.ID, LongURL: c.form(shorten.FieldLongURL)}
	if alias := c.form(shorten.FieldCustomAlias); alias != "" {
		req.CustomAlias = &alias
	}
	if domain := c.form(shorten.FieldDomainID); domain != "" && domain != "0" {
		id := parseID(domain) // 0 if it is not an ID, which no domain has
		req.DomainID = &id
	}
	wait, err := d.attempts.Allow(c.ctx, linksByAccount.By(strconv.FormatInt(c.account.ID, 10)))
	if err != nil {
		return err
	}
	if wait > 0 {
		page, err := d.filledLinksPage(c, req)
		return d.tooMany(c, "links", page, "Too many new links.", wait, err)
	}
	link, err := d.Shortener.Create(c.ctx, req)
	p, invalid := problemsOf(err)
	if message := clientMessage(err, schema.CodeUnsafeURL); message != "" {
		p, invalid = problems{shorten.FieldLongURL: message}, true
	}
	if !invalid {
		if err != nil {
			return err
		}
		return c.seeOther(pathLinks, "Created "+d.Shortener.ShortURL(link)+".")
	}
	page, err := d.filledLinksPage(c, req)
	if err != nil {
		return err
	}
	return d.invalid(c, "links", page, p)
}

// filledLinksPage returns the page with what was asked for in its form.
func (d *Dashboard) filledLinksPage(c *call, req shorten.Request) (linksPage, error) {
	page, err := d.linksPage(c)
	page.Form.LongURL, page.Form.Alias = cut(req.LongURL, maxAsked), cut(c.form(shorten.FieldCustomAlias), maxAsked)
	page.Form.DomainID = parseID(c.form(shorten.FieldDomainID))
	return page, err
}

// cut returns at most n characters of text.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n])
	}
	return text
}

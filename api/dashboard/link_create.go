package dashboard

import (
	"net/url"
	"strconv"
	"strings"

	"linkstream/api/links"
	"linkstream/schema"
)

// paramMade is the parameter of a page that shows a new link: its domain's ID and its hash.
const paramMade = "made"

// shortenForm is the data of the form that creates a link. It stands on the list of links and on the overview.
type shortenForm struct {
	linkFields
	Alias    string
	DomainID int64
	Domains  []schema.Domain // verified ones
	Default  string          // the default domain
	Back     string          // path of the page that has the form
}

// Typed reports whether a field has text.
func (f shortenForm) Typed() bool { return f.LongURL+f.Alias != "" || f.HasMore() }

func (d *Dashboard) newShortenForm(back string, get func(field string) string) shortenForm {
	return shortenForm{linkFields: typedFields(get), Alias: cut(get(links.FieldCustomAlias), maxAsked),
		DomainID: parseID(get(links.FieldDomainID)), Back: back,
		Default: d.defaultDomain()}
}

// shortenForm returns the form of the page back, filled in as it was sent, or as it was before a session ended.
func (d *Dashboard) shortenForm(c *call, back string) (shortenForm, error) {
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	return d.shortenFormOf(c, back, domains), err
}

func (d *Dashboard) shortenFormOf(c *call, back string, domains []schema.Domain) shortenForm {
	get := c.query
	if c.http.IsPost() && c.route == pathLinks {
		get = c.form
	}
	form := d.newShortenForm(back, get)
	form.Domains = verified(domains)
	return form
}

// newPage is the data of the page with the form, to which the list leads where the script does not fetch the form.
type newPage struct{ Form shortenForm }

// LinkFields gives the template the fields, as editPage does.
func (p newPage) LinkFields() linkFields { return p.Form.onHost(p.Form.Default) }

func (d *Dashboard) showNew(c *call) error {
	back := c.query("back")
	if !localPath(back) {
		back = pathLinks
	}
	form, err := d.shortenForm(c, back)
	if err != nil {
		return err
	}
	return d.render(c, "new", newPage{form})
}

// madeLink returns the link that paramMade names, or nil if the account does not have it.
func (d *Dashboard) madeLink(c *call) (*linkView, error) {
	domain, hash, ok := strings.Cut(c.query(paramMade), ".")
	domainID, err := strconv.ParseInt(domain, 10, 64)
	if !ok || err != nil || domainID < 0 || !schema.ValidHash(hash) {
		return nil, nil
	}
	link, err := schema.FindOwnedLink(c.ctx, d.DB, c.account.ID, hash, &domainID)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	made := d.linkView(link)
	return &made, nil
}

// createLink creates a link by the API's rules, for which tokens have a rate limit of their own. An empty optional
// field counts as absent.
func (d *Dashboard) createLink(c *call) error {
	if c.form(fieldRow) != "" {
		name, page, err := d.filledPage(c)
		if err != nil {
			return err
		}
		return d.render(c, name, page)
	}
	req := links.Request{AccountID: c.account.ID, LongURL: longURL(c, ""), Title: c.form(links.FieldTitle),
		Tags: parseTags(c.form(links.FieldTags)), ForwardQuery: c.form(links.FieldForwardQuery) == "true",
		Behaviour: typedBehaviour(c.form).extension(nil, c.zone())}
	if text := withScheme(c.form(links.FieldExpiredURL)); text != "" {
		req.ExpiredURL = &text
	}
	if text := c.form(links.FieldExpiresAt); text != "" {
		at, err := parseExpiry(text, c.zone())
		if req.ExpiresAt = &at; err != nil {
			req.Malformed = map[string][]string{links.FieldExpiresAt: {expiryMisspelled}}
		}
	}
	alias := aliasOf(c.form(links.FieldCustomAlias))
	if alias != "" {
		req.Alias = &alias
	}
	if domain := c.form(links.FieldDomainID); domain != "" && domain != "0" {
		if req.DomainID = new(parseID(domain)); *req.DomainID == 0 { // no ID
			*req.DomainID = -1 // nor of any domain
		}
	}
	wait, err := d.attempts.Allow(c.ctx, linksByAccount.By(strconv.FormatInt(c.account.ID, 10)))
	if err != nil {
		return err
	}
	if wait > 0 {
		name, page, err := d.filledPage(c)
		return d.tooMany(c, name, page, "Too many new links.", wait, err)
	}
	link, err := d.Shortener.Create(c.ctx, req)
	if p, invalid := linkProblems(err); invalid {
		name, page, err := d.filledPage(c)
		if err != nil {
			return err
		}
		return d.invalid(c, name, page, asTyped(p))
	}
	if err != nil {
		return err
	}
	if typed := c.form(links.FieldCustomAlias); typed != alias {
		c.setNotice(notice{Text: "Aliases have small letters, so “" + typed + "” became “" + alias +
			"”. Visitors may type either."})
	}
	return c.redirect(withParam(c.back(pathLinks), paramMade, strconv.FormatInt(link.DomainID, 10)+"."+link.Hash))
}

// filledPage returns the page that has sent the form, by its template's name, with the form still filled in.
func (d *Dashboard) filledPage(c *call) (name string, page any, err error) {
	back, err := url.Parse(c.back(pathLinks))
	if err == nil && d.withForm[back.Path] != nil {
		return d.withForm[back.Path](c)
	}
	list := linksPage{pager: pager{Page: 1}}
	if err == nil && back.Path == pathLinks {
		list.linkFilter = filterOf(func(field string) string { return clean([]byte(back.Query().Get(field))) })
		list.Page = max(1, parseID(back.Query().Get("page")))
	}
	err = d.fillLinksPage(c, &list)
	list.Creating = true
	return "links", list, err
}

package dashboard

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/api/qr"
	"linkstream/schema"
)

// paramMade is the parameter of a page that shows a new link: its domain's ID and its hash.
const paramMade = "made"

// paramFrom is the parameter of the link whose values the form has, but for its alias and password.
const paramFrom = "from"

// pathNew is the page that creates a link, which other pages show in a dialog.
const pathNew = pathLinks + "/new"

// shortenForm is the data of the form that creates a link.
type shortenForm struct {
	linkFields
	Alias    string
	DomainID int64
	Domains  []schema.Domain // verified ones
	Default  string          // the default domain
}

// shortenForm returns the form, filled in as it was sent, or as it was before a session ended.
func (d *Dashboard) shortenForm(c *call) (form shortenForm, err error) {
	get := c.query
	if c.http.IsPost() && c.route == pathLinks {
		get = c.form
	}
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	return shortenForm{linkFields: typedFields(get), Alias: cut(get(links.FieldCustomAlias), maxAsked),
		DomainID: parseID(get(links.FieldDomainID)), Domains: verified(domains), Default: d.defaultDomain()}, err
}

// newPage is the data of the page that creates a link and then shows it.
type newPage struct {
	Form shortenForm
	Made *linkView // the link that the form has just created, or nil
}

// LinkFields gives the template the fields, as editPage does.
func (p newPage) LinkFields() linkFields { return p.Form.onHost(p.Form.Default) }

func (d *Dashboard) newPage(c *call) (page newPage, err error) {
	page.Form, err = d.shortenForm(c)
	return page, err
}

func (d *Dashboard) showNew(c *call) error {
	page, err := d.newPage(c)
	if err != nil {
		return err
	}
	if page.Made, err = d.namedLink(c, paramMade); err != nil {
		return err
	}
	from, err := d.namedLink(c, paramFrom)
	if err != nil {
		return err
	}
	if from != nil && page.Form.LongURL == "" {
		page.Form.linkFields, page.Form.DomainID = fieldsOf(from.Link, c.zone()), from.DomainID
		page.Form.Behaviour.HasPassword = false
	}
	return d.render(c, "new", page)
}

// previewQR answers with the QR code that a link with the alias and on the domain of the query would have, and with
// nothing for what cannot be an alias.
func (d *Dashboard) previewQR(c *call) error {
	link := schema.Link{Hash: aliasOf(strings.TrimSpace(c.query(links.FieldCustomAlias))),
		DomainID: parseID(c.query(links.FieldDomainID))}
	form, err := d.shortenForm(c)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(form.Domains, func(domain schema.Domain) bool { return domain.ID == link.DomainID })
	if at >= 0 {
		link.Host = form.Domains[at].Host
	}
	if at < 0 && link.DomainID != 0 || schema.AliasProblem(link.Hash, link.DomainID == 0) != "" {
		c.http.SetStatusCode(fasthttp.StatusNoContent) // nothing to show, and no error of the page
		return nil
	}
	image, _, err := qr.Default.Draw(d.Shortener.ShortURL(link))
	if err != nil {
		return err
	}
	c.http.SetContentType(qr.Default.ContentType())
	c.http.SetBody(image)
	return nil
}

// namedLink returns the link that a parameter names, or nil if the account does not have it.
func (d *Dashboard) namedLink(c *call, param string) (*linkView, error) {
	domain, hash, ok := strings.Cut(c.query(param), ".")
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
		page, err := d.newPage(c)
		if err != nil {
			return err
		}
		return d.render(c, "new", page)
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
		page, err := d.newPage(c)
		return d.tooMany(c, "new", page, "Too many new links.", wait, err)
	}
	link, err := d.Shortener.Create(c.ctx, req)
	if p, invalid := linkProblems(err); invalid {
		page, err := d.newPage(c)
		if err != nil {
			return err
		}
		return d.invalid(c, "new", page, asPeopleSay(asTyped(p), typedBehaviour(c.form)))
	}
	if err != nil {
		return err
	}
	if typed := c.form(links.FieldCustomAlias); typed != alias {
		c.setNotice(notice{Text: "Aliases are lowercase, so “" + typed + "” became “" + alias +
			"”. Visitors may type either."})
	}
	return c.redirect(withParam(pathNew, paramMade, strconv.FormatInt(link.DomainID, 10)+"."+link.Hash))
}

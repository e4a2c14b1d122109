package dashboard

import (
	"net/url"
	"strconv"
	"time"

	"linkstream/api/clickreport"
	"linkstream/api/request"
	"linkstream/api/sharing"
	"linkstream/schema"
)

const pathNewShare = pathShares + "/new"

func (d *Dashboard) routeShares() {
	d.get(pathShares, request.Reads, d.listShares)
	d.get(pathNewShare, request.Reads, d.newShare)
	d.post(pathNewShare, request.Passwords, d.createShare)
	d.keep(pathNewShare, sharing.FieldHash, sharing.FieldDomainID, sharing.FieldTag, sharing.FieldExpiresAt)
	d.post(pathShares+"/revoke", request.Constant, d.revokeShare)
}

// sharePage is the data of the form that shares a report, and of the page with the address.
type sharePage struct {
	Newest int64  // ID of the newest share; the form repeats it, which reveals a form that is sent twice
	Of     string // what the form shares, in words

	Hash, DomainID, Tag string // of what the form shares
	ExpiresAt           string
	HideTargets         bool

	URL string // of the new share; shown only once
}

// sharedItem is a share as the list shows it.
type sharedItem struct {
	schema.Share
	Of    string // the links, in words
	Ended bool
}

// hostsOf returns the hosts of the account's domains, and of the default domain.
func (d *Dashboard) hostsOf(c *call) (map[int64]string, error) {
	hosts := map[int64]string{0: string(d.Shortener.Base().Host())}
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	for _, domain := range domains {
		hosts[domain.ID] = domain.Host
	}
	return hosts, err
}

// subjectOf says in words what a share's report is about.
func (d *Dashboard) subjectOf(share schema.Share, hosts map[int64]string) string {
	switch {
	case share.Hash != "":
		link := schema.Link{Hash: share.Hash, DomainID: *share.DomainID}
		if link.DomainID != 0 {
			link.Host = hosts[link.DomainID]
		}
		return d.linkView(link).Name
	case share.Tag != "" && share.DomainID != nil:
		return "links with the tag “" + share.Tag + "” on " + hosts[*share.DomainID]
	case share.Tag != "":
		return "links with the tag “" + share.Tag + "”"
	case share.DomainID != nil:
		return "links on " + hosts[*share.DomainID]
	}
	return "all links"
}

func (d *Dashboard) listShares(c *call) error {
	hosts, err := d.hostsOf(c)
	if err != nil {
		return err
	}
	shares, err := d.DB.Shares(c.ctx, c.account.ID)
	if err != nil {
		return err
	}
	items := make([]sharedItem, len(shares))
	for i, share := range shares {
		items[i] = sharedItem{share, d.subjectOf(share, hosts), share.ExpiredAt(time.Now())}
	}
	return d.render(c, "shares", items)
}

// sharePage returns the page for the fields that select the shared report.
func (d *Dashboard) sharePage(c *call, field func(name string) string) (page sharePage, err error) {
	hosts, err := d.hostsOf(c)
	if err != nil {
		return page, err
	}
	shares, err := d.DB.Shares(c.ctx, c.account.ID)
	if len(shares) > 0 {
		page.Newest = shares[0].ID
	}
	page.Hash, page.DomainID, page.Tag = cut(field(sharing.FieldHash), maxAsked),
		cut(field(sharing.FieldDomainID), maxAsked), cut(field(sharing.FieldTag), maxAsked)
	page.ExpiresAt = cut(field(sharing.FieldExpiresAt), maxAsked)
	asked := schema.Share{Hash: page.Hash, Tag: page.Tag}
	if id, err := strconv.ParseInt(page.DomainID, 10, 64); err == nil {
		asked.DomainID = &id
	} else if page.Hash != "" {
		asked.DomainID = new(int64)
	}
	page.Of = d.subjectOf(asked, hosts)
	return page, err
}

func (d *Dashboard) newShare(c *call) error {
	page, err := d.sharePage(c, c.query)
	if err != nil {
		return err
	}
	return d.render(c, "share", page)
}

// createShare answers with the URL, the only page that ever shows it. Reloading that page sends the form again, see
// createToken.
func (d *Dashboard) createShare(c *call) error {
	page, err := d.sharePage(c, c.form)
	if err != nil {
		return err
	}
	page.HideTargets = c.form(sharing.FieldHideTargets) != ""
	if page.Newest > c.formID("newest") {
		return d.invalid(c, "share", page, problems{"": "This form has already been sent, and the report is shared. Its " +
			"address was shown once and cannot be shown again. If you have not saved it, revoke it among the shared reports " +
			"and share the report again."})
	}
	_, page.URL, err = d.Shares.Create(c.ctx, c.shareRequest(page))
	if p, ok := problemsOf(err); ok {
		for _, hidden := range []string{sharing.FieldHash, sharing.FieldDomainID, sharing.FieldTag} {
			// the form does not show them
			if p[hidden] != "" {
				p[""] = p[hidden]
			}
		}
		return d.invalid(c, "share", page, p)
	}
	if err != nil {
		return err
	}
	return d.render(c, "shared", page)
}

// shareRequest returns what the form asks for.
func (c *call) shareRequest(page sharePage) sharing.Request {
	req := sharing.Request{AccountID: c.account.ID, HideTargets: page.HideTargets,
		TimeZone: c.zone().String()}
	for text, value := range map[*string]**string{&page.Hash: &req.Hash, &page.Tag: &req.Tag} {
		if *text != "" {
			*value = text
		}
	}
	if page.DomainID != "" {
		id := parseID(page.DomainID)
		req.DomainID = &id
	}
	if page.ExpiresAt != "" {
		at, err := parseExpiry(page.ExpiresAt, c.zone())
		if req.ExpiresAt = &at; err != nil {
			req.Malformed = map[string][]string{sharing.FieldExpiresAt: {expiryMisspelled}}
		}
	}
	if password := c.secret(sharing.FieldPassword); password != "" {
		req.Password = &password
	}
	return req
}

// revokeShare treats shares of other accounts as unknown.
func (d *Dashboard) revokeShare(c *call) error {
	switch err := d.DB.DeleteShare(c.ctx, c.account.ID, c.formID("share")); {
	case schema.ErrorCode(err) == schema.CodeNotFound:
		return c.seeOther(pathShares, "That report is no longer shared.")
	case err != nil:
		return err
	}
	return c.seeOther(pathShares, "The report is no longer shared. Its link no longer works.")
}

// sharePath returns the path of the form that shares the report of the page.
func (p *reportPage) sharePath() string {
	fields := url.Values{}
	if p.Link != nil {
		fields.Set(sharing.FieldHash, p.Link.Hash)
		fields.Set(sharing.FieldDomainID, formatID(p.Link.DomainID))
	} else {
		for field, value := range map[string]string{clickreport.FieldTag: p.Form.Tag,
			clickreport.FieldDomain: p.Form.Domain} {
			if value != "" {
				fields.Set(field, value)
			}
		}
	}
	if len(fields) == 0 {
		return pathNewShare
	}
	return pathNewShare + "?" + fields.Encode()
}

// formatID returns an ID as text.
func formatID(id int64) string { return strconv.FormatInt(id, 10) }

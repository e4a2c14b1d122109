package dashboard

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/customdomain"
	"linkstream/api/request"
	"linkstream/schema"
)

func domainPath(domainID int64) string { return pathDomains + "/" + strconv.FormatInt(domainID, 10) }

func (d *Dashboard) routeDomains() {
	d.get(pathDomains, request.Constant, d.listDomains)
	d.post(pathDomains, request.Constant, d.addDomain)
	d.keep(pathDomains, customdomain.FieldHost)
	d.get(pathDomains+"/{id}", request.Constant, d.ofDomain(d.showDomain))
	d.post(pathDomains+"/{id}/verify", request.Constant, d.ofDomain(d.verifyDomain))
	d.post(pathSite, request.Constant, d.ofDomain(d.setSite))
	d.post(pathDomains+"/{id}/remove", request.Constant, d.ofDomain(d.removeDomain))
}

// domainsPage is the data of the list of domains and of the form that adds one.
type domainsPage struct {
	Domains []domainItem
	Host    string // as typed
	Target  string // the default domain
	Usable  bool   // a CNAME record can point to Target
	Full    bool   // the limit of domains is reached
	Most    int
}

// domainItem is a domain as shown on pages.
type domainItem struct {
	schema.Domain
	Unicode string // "" if the same as Host
}

func itemOf(domain schema.Domain) domainItem {
	return domainItem{domain, schema.Host(domain.Host).Unicode()}
}

// Verified reports whether the domain may have links.
func (d domainItem) Verified() bool { return !d.VerifiedAt.IsZero() }

// Failing reports whether DNS records of the verified domain are missing.
func (d domainItem) Failing() bool { return !d.FailingSince.IsZero() }

// Lost reports whether the host was taken from the account.
func (d domainItem) Lost() bool { return !d.LostAt.IsZero() }

// Letter returns the letter of the mark that visitors see.
func (d domainItem) Letter() string { return schema.SiteLetter(cmp.Or(d.Name, d.Host)) }

// Tint returns the colour of that mark.
func (d domainItem) Tint() schema.Color { return schema.SiteColor(d.Color) }

// Path returns the path of the domain's page.
func (d domainItem) Path() string { return domainPath(d.ID) }

func (d *Dashboard) domains(c *call) (domainsPage, error) {
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	page := domainsPage{Host: c.typed(customdomain.FieldHost), Full: len(domains) >= customdomain.MaxPerAccount,
		Most: customdomain.MaxPerAccount}
	page.Target, page.Usable = d.Domains.Target()
	for _, domain := range domains {
		page.Domains = append(page.Domains, itemOf(domain))
	}
	return page, err
}

// lossShown is how long the overview shows that a domain was lost.
const lossShown = 30 * 24 * time.Hour

// troubled returns the domains that their owner should look at.
func troubled(domains []schema.Domain, now time.Time) (items []domainItem) {
	for _, domain := range domains {
		if item := itemOf(domain); item.Failing() || now.Before(item.LostAt.Add(lossShown)) {
			items = append(items, item)
		}
	}
	return items
}

func (d *Dashboard) listDomains(c *call) error {
	page, err := d.domains(c)
	if err != nil {
		return err
	}
	return d.render(c, "domains", page)
}

// bareHost returns the host of what may be the address of a page.
func bareHost(text string) string {
	if _, rest, isURL := strings.Cut(text, "://"); isURL {
		text = rest
	}
	host, _, _ := strings.Cut(text, "/")
	return host
}

func (d *Dashboard) addDomain(c *call) error {
	typed := c.form(customdomain.FieldHost)
	domain, err := d.Domains.Add(c.ctx, c.account.ID, bareHost(typed))
	if problems, ok := problemsOf(err); ok {
		page, err := d.domains(c)
		if err != nil {
			return err
		}
		page.Host = typed
		return d.invalid(c, "domains", page, problems)
	}
	if err != nil {
		return err
	}
	return c.seeOther(domainPath(domain.ID), domain.Host+" was added. Set its two DNS records, then verify it.")
}

// domainPage is the data of a domain's page: the records it needs and, after a check, what DNS answered.
type domainPage struct {
	domainItem
	Result customdomain.Result
	Target string // the default domain
	Usable bool   // a CNAME record can point to Target

	Certificate *schema.CertificateState // nil: no edge has tried to get one

	TakeoverAt time.Time // when the domain changes hands if DNS stays as it is; zero: not at all
	GraceDays  int

	Site siteForm
}

func (d *Dashboard) domainPage(c *call, domain schema.Domain) (domainPage, error) {
	page := domainPage{domainItem: itemOf(domain), Result: d.Domains.Expected(c.ctx, domain),
		GraceDays: int(customdomain.Grace / (24 * time.Hour))}
	page.Target, page.Usable = d.Domains.Target()
	var err error
	if page.TakeoverAt, err = d.Domains.TakeoverAt(c.ctx, domain); err != nil || !page.Verified() {
		return page, err
	}
	if page.Site, err = d.site(c, domain); err != nil {
		return page, err
	}
	switch state, err := d.DB.CertificateState(c.ctx, domain.Host); {
	case err == nil:
		page.Certificate = &state
	case schema.ErrorCode(err) != schema.CodeNotFound:
		return page, err
	}
	return page, nil
}

// ofDomain lets handle answer for the account's domain that the path names.
func (d *Dashboard) ofDomain(handle func(*call, schema.Domain) error) func(*call) error {
	return func(c *call) error {
		domain, err := d.Domains.Domain(c.ctx, c.account.ID, c.pathID("id"))
		if err != nil {
			return err
		}
		return handle(c, domain)
	}
}

func (d *Dashboard) showDomain(c *call, domain schema.Domain) error {
	page, err := d.domainPage(c, domain)
	if err != nil {
		return err
	}
	return d.render(c, "domain", page)
}

// verifyDomain looks up the records and shows the result.
func (d *Dashboard) verifyDomain(c *call, before schema.Domain) error {
	domain, result, err := d.Domains.Verify(c.ctx, before)
	page, pageErr := d.domainPage(c, domain)
	if pageErr != nil {
		return pageErr
	}
	page.Result = result
	var notChecked *customdomain.NotCheckedError
	switch {
	case errors.As(err, &notChecked):
		return d.explainNotChecked(c, page, notChecked)
	case clientMessage(err, schema.CodeConflict) != "":
		return d.refuse(c, page, err)
	case err != nil:
		return err
	case page.Verified() && before.VerifiedAt.IsZero():
		return c.seeOther(page.Path(), domain.Host+" is verified. You can create links on it now.")
	}
	return d.render(c, "domain", page)
}

func (d *Dashboard) explainNotChecked(c *call, page domainPage, err *customdomain.NotCheckedError) error {
	status := fasthttp.StatusServiceUnavailable
	if err.Wait > 0 {
		status = fasthttp.StatusTooManyRequests
		c.http.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(int(err.Wait.Seconds())))
	} else {
		d.Log.Error("domain not verified", "host", page.Host, "error", err)
	}
	return d.write(c, status, "domain", page, problems{"": err.Message})
}

// refuse shows the domain's page with the reason why the action failed.
func (d *Dashboard) refuse(c *call, page domainPage, err error) error {
	return d.write(c, fasthttp.StatusConflict, "domain", page, problems{"": clientMessage(err, schema.CodeConflict)})
}

func (d *Dashboard) removeDomain(c *call, domain schema.Domain) error {
	err := d.Domains.Remove(c.ctx, domain)
	if clientMessage(err, schema.CodeConflict) != "" {
		page, pageErr := d.domainPage(c, domain)
		if pageErr != nil {
			return pageErr
		}
		return d.refuse(c, page, err)
	}
	if err != nil {
		return err
	}
	return c.seeOther(pathDomains, domain.Host+" was removed.")
}

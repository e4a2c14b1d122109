package dashboard

import (
	"linkstream/api/shorten"
	"linkstream/schema"
)

// siteForm has the pages and documents of a domain besides its links, as typed.
type siteForm struct {
	URLs      []siteField
	Documents []siteField
}

// siteField is a field of the form.
type siteField struct{ Name, Label, Hint, Text string }

func newSiteForm(site schema.Site, links schema.AppLinks) siteForm {
	return siteForm{
		URLs: []siteField{
			{shorten.FieldRootURL, "Front page", "Where visitors of the domain itself are sent. If empty, they get a page " +
				"without content.", site.RootURL},
			{shorten.FieldNotFoundURL, "Unknown links", "Where visitors are sent if there is no such link. If empty, they are " +
				"told so.", site.NotFoundURL},
			{shorten.FieldExpiredURL, "Expired links", "Where visitors are sent if a link has expired that says nothing else.",
				site.ExpiredURL},
		},
		Documents: []siteField{
			{shorten.FieldAppleLinks, "Universal links of iOS", "JSON for " + schema.AppleLinksPath + ", at most 128 KiB.",
				links.Apple},
			{shorten.FieldAndroidLinks, "App links of Android", "JSON for " + schema.AndroidLinksPath + ", at most 128 KiB.",
				links.Android},
		},
	}
}

// site returns the form of a domain with its stored values.
func (d *Dashboard) site(c *call, domain schema.Domain) (siteForm, error) {
	var links schema.AppLinks
	if domain.HasAppLinks {
		var err error
		if links, err = d.DB.AppLinks(c.ctx, domain.ID); err != nil {
			return siteForm{}, err
		}
	}
	return newSiteForm(domain.Site, links), nil
}

func (d *Dashboard) setSite(c *call, domain schema.Domain) error {
	site := schema.Site{RootURL: c.form(shorten.FieldRootURL), NotFoundURL: c.form(shorten.FieldNotFoundURL),
		ExpiredURL: c.form(shorten.FieldExpiredURL)}
	links := schema.AppLinks{Apple: c.form(shorten.FieldAppleLinks), Android: c.form(shorten.FieldAndroidLinks)}
	err := d.Shortener.SetSite(c.ctx, domain.ID, site, links)
	if problems, ok := problemsOf(err); ok {
		page, err := d.domainPage(c, domain)
		if err != nil {
			return err
		}
		page.Site = newSiteForm(site, links)
		return d.invalid(c, "domain", page, problems)
	}
	if err != nil {
		return err
	}
	return c.seeOther(domainPath(domain.ID), "What visitors of "+domain.Host+" get besides links was saved.")
}

package dashboard

import (
	"cmp"

	"linkstream/api/links"
	"linkstream/schema"
)

// siteForm has the pages and documents of a domain besides its links, as typed.
type siteForm struct {
	Name           string
	Color, Default schema.Color

	URLs      []siteField
	PathMode  choiceField
	Documents []siteField
}

// siteField is a field of the form.
type siteField struct{ Name, Label, Hint, Text string }

func newSiteForm(site schema.Site, documents schema.AppLinks) siteForm {
	return siteForm{
		Name: site.Name, Color: schema.SiteColor(site.Color), Default: schema.DefaultColor,
		URLs: []siteField{
			{links.FieldRootURL, "Front page",
				"Where the domain itself leads. If empty, visitors see a page without content.", site.RootURL},
			{links.FieldNotFoundURL, "Unknown links",
				"Where visitors go when a link does not exist. If empty, they are told so.", site.NotFoundURL},
			{links.FieldExpiredURL, "Expired links",
				"Where visitors go when a link has expired and has no such URL of its own.", site.ExpiredURL},
		},
		PathMode: choiceField{links.FieldPathMode, "Paths behind an alias",
			"What becomes of /alias/more/text if no link has this name. A link may say otherwise.",
			string(cmp.Or(site.PathMode, schema.PathNone)), pathModes},
		Documents: []siteField{
			{links.FieldAppleLinks, "Universal links of iOS", "JSON for " + schema.AppleLinksPath + ", at most 128 KiB.",
				documents.Apple},
			{links.FieldAndroidLinks, "App links of Android", "JSON for " + schema.AndroidLinksPath + ", at most 128 KiB.",
				documents.Android},
		},
	}
}

// site returns the form of a domain with its stored values.
func (d *Dashboard) site(c *call, domain schema.Domain) (siteForm, error) {
	var documents schema.AppLinks
	if domain.HasAppLinks {
		var err error
		if documents, err = d.DB.AppLinks(c.ctx, domain.ID); err != nil {
			return siteForm{}, err
		}
	}
	return newSiteForm(domain.Site, documents), nil
}

func (d *Dashboard) setSite(c *call, domain schema.Domain) error {
	site := schema.Site{RootURL: c.form(links.FieldRootURL), NotFoundURL: c.form(links.FieldNotFoundURL),
		ExpiredURL: c.form(links.FieldExpiredURL), PathMode: schema.PathMode(c.form(links.FieldPathMode)),
		Name: c.form(links.FieldSiteName), Color: c.form(links.FieldSiteColor)}
	if site.Color == schema.DefaultColor.String() { // which browsers send for a field without a value of its own
		site.Color = ""
	}
	documents := schema.AppLinks{Apple: c.form(links.FieldAppleLinks), Android: c.form(links.FieldAndroidLinks)}
	err := d.Shortener.SetSite(c.ctx, domain.ID, site, documents)
	if problems, ok := problemsOf(err); ok {
		page, err := d.domainPage(c, domain)
		if err != nil {
			return err
		}
		page.Site = newSiteForm(site, documents)
		return d.invalid(c, "domain", page, problems)
	}
	if err != nil {
		return err
	}
	return c.seeOther(domainPath(domain.ID), "What visitors of "+domain.Host+" see was saved.")
}

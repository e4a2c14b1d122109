package links

import (
	"context"

	"linkstream/schema"
)

// Names of a site's fields in validation errors.
const (
	FieldRootURL      = "root_url"
	FieldNotFoundURL  = "not_found_url"
	FieldAppleLinks   = "apple_app_site_association"
	FieldAndroidLinks = "assetlinks"
	FieldSiteName     = "name"
	FieldSiteColor    = "color"
)

// SetSite sets what visitors of a domain get whom no link leads anywhere, and the domain's documents for apps.
// CodeInvalid names every invalid field; URLs obey the rules of links.
func (s *Shortener) SetSite(ctx context.Context, domainID int64, site schema.Site, links schema.AppLinks) error {
	var v validation
	for _, u := range []fieldURL{{FieldRootURL, site.RootURL}, {FieldNotFoundURL, site.NotFoundURL},
		{FieldExpiredURL, site.ExpiredURL}} {
		if u.address == "" {
			continue
		}
		if err := s.validateURL(ctx, u.field, u.address, &v); err != nil {
			return err
		}
		if v.unsafe != "" {
			v.reject(u.field, v.unsafe)
			v.unsafe = ""
		}
	}
	if !site.PathMode.Valid() {
		v.reject(FieldPathMode, "Choose what becomes of paths behind an alias.")
	}
	for field, problem := range map[string]string{FieldAppleLinks: schema.AppLinksProblem(links.Apple),
		FieldAndroidLinks: schema.AppLinksProblem(links.Android), FieldSiteName: schema.SiteNameProblem(site.Name),
		FieldSiteColor: schema.SiteColorProblem(site.Color)} {
		if problem != "" {
			v.reject(field, problem)
		}
	}
	if err := v.outcome(); err != nil {
		return err
	}
	return s.domains.SetSite(ctx, domainID, site, links)
}

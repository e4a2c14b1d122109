package resolve

import (
	"context"
	"net/netip"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"linkstream/schema"
)

// SiteURL is a URL of a schema.Site.
type SiteURL protowire.Number

// The URLs of a site.
const (
	RootURL SiteURL = 1 + iota
	NotFoundURL
	ExpiredURL
)

const (
	// fieldAppLinks is 1 if the domain has schema.AppLinks, which are not worth the memory of an entry.
	fieldAppLinks = protowire.Number(ExpiredURL) + 1 + iota
	fieldPathMode // paths of links that leave them to the domain, above 0
	fieldSiteName
	fieldSiteColor
)

// appendSite appends the bytes of a host's entry: a message in protobuf's wire format whose URLs are locations. A
// domain without a site has none.
func appendSite(dst []byte, site *schema.Site, appLinks bool) []byte {
	for i, url := range []string{site.RootURL, site.NotFoundURL, site.ExpiredURL} {
		if url != "" {
			dst = appendField(dst, protowire.Number(RootURL)+protowire.Number(i), appendLocation(nil, url))
		}
	}
	if appLinks {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, fieldAppLinks, protowire.VarintType), 1)
	}
	if mode := pathsOfMode(site.PathMode); mode > 0 {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, fieldPathMode, protowire.VarintType), uint64(mode))
	}
	if site.Name != "" {
		dst = appendField(dst, fieldSiteName, []byte(site.Name))
	}
	if site.Color != "" {
		dst = appendField(dst, fieldSiteColor, []byte(site.Color))
	}
	return dst
}

// siteField returns a field of a site, the zero field if it is not set.
func siteField(site []byte, number protowire.Number) (f field) {
	for len(site) > 0 {
		if f, site = next(site); f.number == number {
			return f
		}
	}
	return field{}
}

// SiteLocation returns the location of a target's host for visitors without a link, nil if the domain has none or if it
// leads to a blocked host. The target may be the result of a failed Resolve.
func (r *Resolver) SiteLocation(t *Target, url SiteURL) []byte {
	if t.host == nil {
		return nil
	}
	location := siteField(t.host.answer(), protowire.Number(url)).bytes
	if t.host.listed.Load() && r.blocks(location) {
		return nil
	}
	return location
}

// Brand returns what pages show of a target's domain: its name and colour, "" if it has none, and its host, "" if the
// domain is not known. The target may be the result of a failed Resolve.
func (r *Resolver) Brand(t *Target) (name, host, color string) {
	switch {
	case t.host == nil:
		return "", "", ""
	case t.host == r.home:
		host = r.defaultHost
	default:
		host = string(t.host.key())
	}
	site := t.host.answer()
	return string(siteField(site, fieldSiteName).bytes), host, string(siteField(site, fieldSiteColor).bytes)
}

// judgeHost notes whether a site may lead to a blocked host.
func (r *Resolver) judgeHost(e *entry[domainID]) {
	listed := false
	for rest := e.answer(); len(rest) > 0 && !listed; {
		var f field
		f, rest = next(rest)
		listed = f.number <= protowire.Number(ExpiredURL) && r.blocks(f.bytes)
	}
	e.listed.Store(listed)
}

// HostName returns the name of the domain that a host stands for, or nothing if it cannot stand for one.
func (r *Resolver) HostName(host []byte) []byte {
	name, isDefault, _ := r.domainName(host)
	if isDefault {
		return []byte(r.defaultHost)
	}
	return name
}

// IsDefault reports whether a host is the default domain's.
func (r *Resolver) IsDefault(host []byte) bool {
	_, isDefault, _ := r.domainName(host)
	return isDefault
}

// AppLinks returns the document at a path of a host, "" if there is none. It reads documents of custom domains from the
// store, and is bounded as Preview is.
func (r *Resolver) AppLinks(host []byte, path string, client netip.Addr, now time.Time) (document string, err error) {
	t, err := r.Resolve(host, nil, client, now) // which finds the host alone
	switch {
	case t.host == nil && err != errNotFound:
		return "", err
	case t.host == nil:
		return "", nil
	case t.host == r.home:
		return r.homeLinks.At(path), nil
	case siteField(t.host.answer(), fieldAppLinks).value == 0:
		return "", nil
	}
	err = r.readPage(client, now, func(ctx context.Context) error {
		links, err := r.domains.AppLinks(ctx, int64(t.host.value))
		document = links.At(path)
		if schema.ErrorCode(err) == schema.CodeNotFound {
			return nil
		}
		return err
	})
	return document, err
}

package e2e_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"linkstream/api/customdomain/dnstest"
	"linkstream/schema/testkit"
)

const shortHost = "sho.example" // the default domain, the target of CNAME records

// TestCustomDomain adds, verifies and uses a custom domain as its owner does. The edge would look up an unknown link
// again after an hour: if it has a new link sooner, the change was published.
func TestCustomDomain(t *testing.T) {
	t.Parallel()
	dns := dnstest.Start(t)
	s := startSystem(t, longCaches, "LINKSTREAM_API_RESOLVER="+dns.Addr(), "LINKSTREAM_EDGE_URL=http://"+shortHost)
	const host = "go.example.org"
	owner := s.owner()
	pages := s.signIn(t)
	there := func() answer { return s.visit(t, http.MethodGet, "/there", "Host", host) }
	wantPage(t, there(), http.StatusNotFound) // and the edge caches that

	added := pages.post(t, "/dashboard/domains", "host", "GO.Example.ORG.")
	path := added.Header.Get("Location")
	id := decode(strings.TrimPrefix(path, "/dashboard/domains/"))
	if added.Status != http.StatusSeeOther || id == nil {
		t.Fatal(added)
	}
	fields := object{"long_url": "https://example.com/there", "custom_alias": "there", "domain_id": id}
	challenge := regexp.MustCompile(`linkstream-verification=\w+`).FindString(pages.get(t, path).Raw)

	t.Run("an unverified domain cannot be used", func(t *testing.T) {
		owner.Shorten(t, fields).WantError(t, http.StatusUnprocessableEntity, "domain_id")
	})
	t.Run("a domain without its records is not verified", func(t *testing.T) {
		wantText(t, pages.post(t, path+"/verify"), http.StatusOK, "not verified yet", "NXDOMAIN")
		owner.Shorten(t, fields).WantError(t, http.StatusUnprocessableEntity, "domain_id")
	})
	t.Run("a domain with its records is verified, and its links are served at once", func(t *testing.T) {
		dns.Add(t, host+". CNAME "+shortHost+".", "_linkstream."+host+`. TXT "`+challenge+`"`)
		if a := pages.post(t, path+"/verify"); a.Status != http.StatusSeeOther {
			t.Fatal(a)
		}
		if short := owner.Link(t, fields)["short_url"]; short != "http://"+host+"/there" {
			t.Errorf("short_url is %v", short)
		}
		testkit.Succeeds(t, func() error { return there().IsStatus(http.StatusFound) })
		if to := there().Header.Get("Location"); to != "https://example.com/there" {
			t.Errorf("Location is %q", to)
		}
	})
	t.Run("its name and colour are on its pages as soon as they are set", func(t *testing.T) {
		owner.Link(t, object{"long_url": "https://example.com/", "custom_alias": "secret", "domain_id": id,
			"password": "sesame"})
		shows := func(texts ...string) {
			t.Helper()
			testkit.Succeeds(t, func() error {
				a := s.visit(t, http.MethodGet, "/secret", "Host", host)
				for _, text := range append(texts, `<input id="password"`) {
					if !strings.Contains(a.Raw, text) {
						return fmt.Errorf("no %q: %v", text, a)
					}
				}
				return a.IsStatus(http.StatusOK)
			})
		}
		shows("<bdi>"+host+"</bdi>", "--brand:#0b7268")
		a := pages.post(t, path+"/site", "name", "Müller & Söhne", "color", "#ffd400")
		testkit.Must(t, a.IsStatus(http.StatusSeeOther))
		shows("<bdi>Müller &amp; Söhne</bdi>", "--brand:#ffd400")
	})
}

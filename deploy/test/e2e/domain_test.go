package e2e_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"linkstream/api/customdomain/dnstest"
	"linkstream/schema/testkit"
)

const shortHost = "sho.example" // the default domain, the target of CNAME records

func TestCustomDomain(t *testing.T) {
	t.Parallel()
	// The edge would look up an unknown link again after an hour. If it knows a new link sooner, a change was published.
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		dns := dnstest.Start(t)
		s := newSystem(t, longCaches, "LINKSTREAM_API_RESOLVER="+dns.Addr())
		s.programs[0].args = append(s.programs[0].args, "-edge.url", "http://"+shortHost)
		s.start(t)
		testCustomDomain(t, s, dns)
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		dns := dnstest.Start(t)
		s := newServices(t, sharedEngines(t), longCaches, "LINKSTREAM_API_RESOLVER="+dns.Addr(),
			"LINKSTREAM_EDGE_URL=http://"+shortHost)
		s.start(t)
		testCustomDomain(t, s, dns)
	})
}

// testCustomDomain adds, verifies and uses a custom domain as its owner does.
func testCustomDomain(t *testing.T, s *system, dns *dnstest.Server) {
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
	t.Run("a verified domain stays verified without its records", func(t *testing.T) {
		dns.Remove(host)
		wantText(t, pages.post(t, path+"/verify"), http.StatusOK, "stays verified", "NXDOMAIN")
		s.click(t, "there", "Host", host)
	})
	t.Run("a domain with a link cannot be removed", func(t *testing.T) {
		wantText(t, pages.post(t, path+"/remove"), http.StatusConflict, "This domain has links")
		s.click(t, "there", "Host", host)
	})
}

// pages is an HTTP client with a session of the dashboard.
type pages struct {
	base    string
	cookies string
	csrf    string
}

// signIn signs in to the first account.
func (s *system) signIn(t *testing.T) pages { t.Helper(); return s.signInAs(t, s.email, s.password) }

// signInAs signs in to an account.
func (s *system) signInAs(t *testing.T, email, password string) pages {
	t.Helper()
	p := pages{base: s.api}
	a := p.send(t, "/dashboard/sign-in", url.Values{"email": {email}, "password": {password}})
	cookies := (&http.Response{Header: a.Header}).Cookies()
	if a.Status != http.StatusSeeOther || len(cookies) == 0 {
		t.Fatal(a)
	}
	for _, cookie := range cookies {
		p.cookies += fmt.Sprintf("%s=%s; ", cookie.Name, cookie.Value)
	}
	token := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(p.get(t, "/dashboard/domains").Raw)
	if token == nil {
		t.Fatal("the page has no form")
	}
	p.csrf = token[1]
	return p
}

func (p pages) get(t *testing.T, path string) answer {
	t.Helper()
	return call(t, http.MethodGet, p.base+path, "", "Cookie", p.cookies)
}

// post sends a form of names and values in turn.
func (p pages) post(t *testing.T, path string, fields ...string) answer {
	t.Helper()
	form := url.Values{"csrf": {p.csrf}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return p.send(t, path, form)
}

func (p pages) send(t *testing.T, path string, form url.Values) answer {
	t.Helper()
	return call(t, http.MethodPost, p.base+path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded",
		"Cookie", p.cookies, "Origin", p.base)
}

// wantText requires a page with all texts.
func wantText(t *testing.T, a answer, status int, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if a.Status != status || !strings.Contains(html.UnescapeString(a.Raw), text) {
			t.Errorf("want %d and %q: %v", status, text, a)
		}
	}
}

package dashboard_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"linkstream/api/apiservice"
	"linkstream/api/customdomain"
	"linkstream/api/customdomain/dnstest"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// domainSite is a service with a resolver of its own, and the browsers of two accounts.
type domainSite struct {
	*testService
	dns      *dnstest.Server
	other    schema.Account
	one, two *browser
}

func newDomainSite(t *testing.T) *domainSite {
	t.Helper()
	resolver := dnstest.Start(t)
	blocklist := filepath.Join(t.TempDir(), "unsafe")
	testkit.Must(t, os.WriteFile(blocklist, []byte("unsafe.example"), 0o600))
	s := &domainSite{dns: resolver, testService: start(t, func(cfg *apiservice.Config) {
		cfg.Domains = customdomain.Config{Resolver: resolver.Addr(), Timeout: 2 * time.Second, Total: 8 * time.Second}
		cfg.Blocklist = blocklist
	})}
	s.other = s.addAccount(t, "other@example.org")
	s.one, s.two = s.signedIn(t), s.browser(t)
	if s.two.signIn(s.other.Email, password).status != http.StatusSeeOther {
		t.Fatal(s.two.seen)
	}
	return s
}

// domain adds a domain by the form and returns it.
func (s *domainSite) domain(t *testing.T, b *browser, account schema.Account, host string) schema.Domain {
	t.Helper()
	b.post("/dashboard/domains", "host", host).want(t, http.StatusSeeOther)
	domains, err := s.links.Domains(t.Context(), account.ID)
	testkit.Must(t, err)
	for _, domain := range domains {
		if domain.Host == host {
			return domain
		}
	}
	t.Fatalf("%q is not among %+v", host, domains)
	return schema.Domain{}
}

// prove sets the records that a domain needs.
func (s *domainSite) prove(t *testing.T, domain schema.Domain) {
	t.Helper()
	s.dns.Add(t, domain.Host+". CNAME sho.rt.", "_linkstream."+domain.Host+`. TXT "`+domain.Challenge+`"`)
}

func pathOf(domain schema.Domain) string { return fmt.Sprintf("/dashboard/domains/%d", domain.ID) }

// lacks fails if the source of the page has any of texts.
func (a answer) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("the page has %q:\n%s", text, a.body)
		}
	}
}

func TestDomains(t *testing.T) {
	s := newDomainSite(t)
	b := s.one
	b.get("/dashboard/domains").want(t, 200, "No domains yet", "sho.rt")

	var domain schema.Domain
	t.Run("one that is added leads to its page, with the records to set", func(t *testing.T) {
		b.post("/dashboard/domains", "host", " https://GO.München.example.net./page?x")
		domains, err := s.links.Domains(t.Context(), s.account.ID)
		testkit.Must(t, err)
		if len(domains) != 1 || domains[0].Host != "go.xn--mnchen-3ya.example.net" {
			t.Fatalf("%+v", domains)
		}
		domain = domains[0]
		b.seen.wantTo(t, pathOf(domain))
		b.follow().want(t, 200, domain.Host+" was added", "go.münchen.example.net", "_linkstream."+domain.Host,
			domain.Challenge, "sho.rt", "Not verified", "Verify")
		b.seen.lacks(t, "Not found", `id="domain-id"`)
	})
	t.Run("missing records are listed one by one", func(t *testing.T) {
		s.dns.Add(t, domain.Host+". CNAME elsewhere.example.net.", "elsewhere.example.net. A 192.0.2.1")
		b.post(pathOf(domain)+"/verify").want(t, 200, "not verified yet", "elsewhere.example.net", "another name",
			"NXDOMAIN")
		s.dns.Remove(domain.Host)
		s.dns.Add(t, domain.Host+". A 192.0.2.7")
		b.post(pathOf(domain)+"/verify").want(t, 200, "192.0.2.7", "no CNAME record")
		s.dns.Fail(domain.Host, dns.RcodeServerFailure)
		b.post(pathOf(domain)+"/verify").want(t, 200, "SERVFAIL")
		s.dns.Handle(domain.Host, nil)
		b.get("/dashboard/domains").want(t, 200, "Not verified")
	})
	t.Run("it is verified once both records are there", func(t *testing.T) {
		s.dns.Remove(domain.Host)
		s.prove(t, domain)
		b.post(pathOf(domain)+"/verify").wantTo(t, pathOf(domain))
		b.follow().want(t, 200, domain.Host+" is verified", "Verify again", fmt.Sprintf(`"domain_id": %d`, domain.ID))
		held, err := s.links.VerifiedDomain(t.Context(), domain.Host)
		if err != nil || held.ID != domain.ID {
			t.Errorf("%+v, %v", held, err)
		}
		b.get("/dashboard/domains").want(t, 200, "Verified")
		b.seen.lacks(t, "Not verified")
	})
	t.Run("to verify it again shows how DNS is now, and takes nothing away", func(t *testing.T) {
		b.post(pathOf(domain)+"/verify").want(t, 200, "Both DNS records were found")
		s.dns.Remove(domain.Host)
		b.post(pathOf(domain)+"/verify").want(t, 200, "stays verified", "NXDOMAIN", "Verify again")
		if _, err := s.links.VerifiedDomain(t.Context(), domain.Host); err != nil {
			t.Error(err)
		}
	})
}

func TestSiteOfDomain(t *testing.T) {
	s := newDomainSite(t)
	domain := s.domain(t, s.one, s.account, "go.example.com")
	site := pathOf(domain) + "/site"
	s.one.get(pathOf(domain)).lacks(t, `name="root_url"`)
	testkit.Must(t, s.links.VerifyDomain(t.Context(), domain.ID, time.Now()))
	// most of 128 KiB, which escapes make three times as long
	document := `{"applinks": "` + strings.Repeat("<&>", 43_000) + `"}`
	fields := []string{"root_url", "https://example.com/", "not_found_url", " https://example.com/404 ", "expired_url",
		"https://example.com/late", "path_mode", "append", "name", " Müller & Söhne ", "color", "#FFD400",
		"apple_app_site_association", document, "assetlinks", "[]"}
	wantSite := func(want schema.Site, links schema.AppLinks) {
		t.Helper()
		got, err := s.links.Domain(t.Context(), domain.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "site", got.Site, want)
		stored, err := s.links.AppLinks(t.Context(), domain.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "app links", stored, links)
	}
	s.one.post(site, fields...).wantTo(t, pathOf(domain))
	set := schema.Site{RootURL: "https://example.com/", NotFoundURL: "https://example.com/404",
		ExpiredURL: "https://example.com/late", PathMode: schema.PathAppend, Name: "Müller & Söhne",
		Color: "#FFD400"}
	wantSite(set, schema.AppLinks{Apple: document, Android: "[]"})
	s.one.follow().want(t, 200, "was saved", `{"applinks": "<&>`, "Unknown links")
	for _, value := range []string{`value="https://example.com/404"`, `value="https://example.com/late"`,
		`<option value="append" selected>`,
		`name="name" type="text" maxlength="60" autocomplete="off" placeholder="go.example.com" value="Müller &amp; Söhne"`,
		`type="color" value="#ffd400"`, `fill="#ffd400"/>`, `fill="#000000">M</text>`} {
		if !strings.Contains(s.one.seen.body, value) {
			t.Errorf("no %s", value)
		}
	}
	s.one.post(site, "root_url", "ftp://example.com/", "not_found_url", "https://sho.rt/abc", "expired_url",
		"https://unsafe.example/", "path_mode", "keep", "name", strings.Repeat("ü", 61), "color", "red",
		"apple_app_site_association", "{", "assetlinks",
		`"`+strings.Repeat("x", 128<<10)+`"`).want(t, http.StatusUnprocessableEntity,
		"must begin with http:// or https://", "must not lead to this service itself", "known as unsafe", "not valid JSON",
		"Choose what becomes of paths", "at most 60 characters", "six hexadecimal digits",
		"at most 128 KiB")
	s.two.post(site, fields...).want(t, http.StatusNotFound)
	wantSite(set, schema.AppLinks{Apple: document, Android: "[]"})
	s.one.get("/dashboard/domains").want(t, 200, "Müller & Söhne")
	for _, none := range [][]string{{"color", "#0b7268"}, {}} { // browsers send the default colour
		s.one.post(site, none...).wantTo(t, pathOf(domain))
		wantSite(schema.Site{}, schema.AppLinks{})
	}
	s.one.follow().want(t, 200, "visitors see go.example.com", "#0b7268 by default")
}

func TestApexDomain(t *testing.T) {
	s := newDomainSite(t)
	s.dns.Add(t, "sho.rt. A 192.0.2.1", "sho.rt. AAAA 2001:db8::1")
	domain := s.domain(t, s.one, s.account, "example.net")
	s.one.get(pathOf(domain)).want(t, 200, "ALIAS record, or A and AAAA records", "192.0.2.1", "2001:db8::1",
		"no label in front")
	s.dns.Add(t, "example.net. A 192.0.2.9", `_linkstream.example.net. TXT "`+domain.Challenge+`"`)
	s.one.post(pathOf(domain)+"/verify").want(t, 200, "not verified yet", "192.0.2.9", "not those of this service")
	s.dns.Remove("example.net")
	s.dns.Add(t, "example.net. A 192.0.2.1")
	s.one.post(pathOf(domain)+"/verify").wantTo(t, pathOf(domain))
	s.one.follow().want(t, 200, "example.net is verified")
}

func TestDomainsAreRemoved(t *testing.T) {
	s := newDomainSite(t)
	b := s.one
	t.Run("not while a link is on one", func(t *testing.T) {
		domain := s.domain(t, b, s.account, "go.example.com")
		link := schema.Link{AccountID: s.account.ID, DomainID: domain.ID, Hash: "there", URL: "https://example.com/",
			Active: true, CreatedAt: time.Now()}
		testkit.Must(t, s.links.CreateLink(t.Context(), &link))
		b.post(pathOf(domain)+"/remove").want(t, http.StatusConflict, "This domain has links", domain.Host)
	})
	t.Run("one without links is", func(t *testing.T) {
		free := s.domain(t, b, s.account, "free.example.com")
		b.post(pathOf(free)+"/remove").wantTo(t, "/dashboard/domains")
		b.follow().want(t, 200, "free.example.com was removed")
		b.get(pathOf(free)).want(t, http.StatusNotFound)
		b.get("/dashboard/domains").lacks(t, "free.example.com")
	})
}

func TestDomainsThatCannotBeAdded(t *testing.T) {
	s := newDomainSite(t)
	s.domain(t, s.one, s.account, "go.example.com")
	for host, says := range map[string]string{
		"go.example.com": "already", "GO.Example.COM.": "already", "sho.rt": "default domain",
		"http://go.example.com/": "already", "": "hostname", "127.0.0.1": "hostname", "com": "hostname",
		`"><script>alert(1)</script>`: "hostname", "\xff\x00": "hostname", strings.Repeat("ü.", 5000): "hostname",
	} {
		t.Run(host[:min(len(host), 30)], func(t *testing.T) {
			s.one.post("/dashboard/domains", "host", host).want(t, http.StatusUnprocessableEntity, says)
			s.one.seen.lacks(t, "<script>alert")
			if !strings.Contains(s.one.seen.body, `aria-describedby="host-problem`) {
				t.Errorf("the field is not marked:\n%s", s.one.seen.body)
			}
		})
	}
	if domains, err := s.links.Domains(t.Context(), s.account.ID); err != nil || len(domains) != 1 {
		t.Errorf("%+v, %v", domains, err)
	}
	t.Run("another account may claim the same host, but not verify it when it is held", func(t *testing.T) {
		held := s.domain(t, s.one, s.account, "held.example.com")
		s.prove(t, held)
		s.one.post(pathOf(held)+"/verify").want(t, http.StatusSeeOther)
		claimed := s.domain(t, s.two, s.other, "held.example.com")
		s.dns.Add(t, "_linkstream.held.example.com. TXT "+claimed.Challenge)
		s.two.post(pathOf(claimed)+"/verify").want(t, http.StatusConflict, "another account has verified")
	})
	t.Run("no more than a hundred", func(t *testing.T) {
		for i := range 98 {
			domain := customdomain.New(s.account.ID, fmt.Sprintf("h%d.example.com", i))
			testkit.Must(t, s.links.CreateDomain(t.Context(), &domain))
		}
		s.one.post("/dashboard/domains", "host", "more.example.com").want(t, 422, "100 domains")
		s.one.get("/dashboard/domains").want(t, 200, "which is the maximum")
	})
}

func TestDomainThatChangesHands(t *testing.T) {
	s := newDomainSite(t)
	held := s.domain(t, s.one, s.account, "go.example.com")
	s.prove(t, held)
	s.one.post(pathOf(held)+"/verify").want(t, http.StatusSeeOther)
	link := schema.Link{AccountID: s.account.ID, DomainID: held.ID, Hash: "there", URL: "https://example.com/",
		Active:    true,
		CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateLink(t.Context(), &link))
	linkPath := fmt.Sprintf("/dashboard/links/%d/there", held.ID)

	t.Run("warns its owner while its records are missing", func(t *testing.T) {
		s.one.get("/dashboard").lacks(t, "records are missing")
		s.dns.Remove("_linkstream." + held.Host)
		s.one.post(pathOf(held)+"/verify").want(t, 200, "stays verified", "Since", "7 days later")
		s.one.get("/dashboard/domains").want(t, 200, "Records missing")
		s.one.get("/dashboard").want(t, 200, "go.example.com : its DNS records have been missing since")
	})
	claim := s.domain(t, s.two, s.other, "go.example.com")
	t.Run("shows both accounts when it will", func(t *testing.T) {
		s.dns.Add(t, "_linkstream."+claim.Host+`. TXT "`+claim.Challenge+`"`)
		s.two.post(pathOf(claim)+"/verify").want(t, http.StatusConflict, "you get the domain on", "Keep your records")
		s.two.get(pathOf(claim)).want(t, 200, "Another account has this domain, but its records are gone", "Not verified")
		s.one.get(pathOf(held)).want(t, 200, "Another account has proved that it controls go.example.com")
	})
	t.Run("shows both accounts when it has", func(t *testing.T) {
		testkit.Must(t, s.links.ContestDomain(t.Context(), held.ID, claim.ID, time.Now().Add(-customdomain.Grace)))
		s.two.post(pathOf(claim)+"/verify").wantTo(t, pathOf(claim))
		s.two.follow().want(t, 200, "go.example.com is verified")
		s.one.get(pathOf(held)).want(t, 200, "was taken from your account", "Lost", "You keep their statistics")
		s.one.get("/dashboard/domains").want(t, 200, "Lost")
		s.one.get("/dashboard").want(t, 200, "go.example.com : your account no longer has this domain")
		s.one.get(linkPath).want(t, 200, "domain lost", "visitors do not find this link")
	})
}

func TestLinkThatIsTakenDown(t *testing.T) {
	s := start(t)
	s.addLink(t, "known", "https://example.com/")
	testkit.Must(t, s.links.SetTakenDown(t.Context(), 0, "known", true))
	b := s.signedIn(t)
	b.get("/dashboard/links").want(t, 200, "taken down")
	b.get("/dashboard/links/0/known").want(t, 200, "taken down", "operator of this service has taken down this link")
}

func TestDomainShowsTextOfStrangersAsText(t *testing.T) {
	s := newDomainSite(t)
	domain := s.domain(t, s.one, s.account, "go.example.com")
	s.dns.Add(t, `_linkstream.go.example.com. TXT "<script>alert(1)</script>"`,
		`go.example.com. CNAME \<img\032src=x\032onerror=alert\(2\)\>.example.net.`)
	s.one.post(pathOf(domain)+"/verify").want(t, 200, "<script>alert(1)</script>", "onerror=alert")
	s.one.seen.lacks(t, "<script>alert", "<img\\")
}

func TestDomainsOfOthersAreNotFound(t *testing.T) {
	s := newDomainSite(t)
	domain := s.domain(t, s.one, s.account, "go.example.com")
	s.prove(t, domain)
	s.two.get(pathOf(domain)).want(t, http.StatusNotFound)
	s.two.seen.lacks(t, domain.Challenge, domain.Host)
	for _, action := range []string{"/verify", "/remove"} {
		s.two.post(pathOf(domain)+action).want(t, http.StatusNotFound)
		s.two.seen.lacks(t, domain.Challenge, domain.Host)
	}
	for _, id := range []string{"0", "-1", "999", "x", "9223372036854775808", "1%2F2"} {
		s.one.get("/dashboard/domains/"+id).want(t, http.StatusNotFound)
	}
	after, err := s.links.Domain(t.Context(), domain.ID)
	if err != nil || !after.VerifiedAt.IsZero() || s.dns.Queries() != 0 {
		t.Errorf("%+v, %v, %d queries", after, err, s.dns.Queries())
	}
	s.two.get("/dashboard/domains").want(t, 200, "No domains yet")
}

func TestDomainsWithoutAPublicName(t *testing.T) {
	s := start(t, func(cfg *apiservice.Config) { cfg.EdgeURL = schema.MustParseBaseURL("http://127.0.0.1:8080") })
	b := s.signedIn(t)
	page := b.get("/dashboard/domains")
	page.want(t, 200, "127.0.0.1", "-edge.url")
	page.lacks(t, `name="host"`)
	b.post("/dashboard/domains", "host", "go.example.com")
	b.follow().want(t, 200, "127.0.0.1", "-edge.url")
}

func TestDomainsWithoutAResolver(t *testing.T) {
	s := start(t, func(cfg *apiservice.Config) { cfg.Domains.System = t.TempDir() + "/none" })
	b := s.signedIn(t)
	b.post("/dashboard/domains", "host", "go.example.com")
	path := b.seen.header.Get("Location")
	b.post(path+"/verify").want(t, http.StatusServiceUnavailable, "no DNS resolver", "go.example.com")
	b.seen.lacks(t, "/none")
	if !strings.Contains(s.log.String(), "-api.resolver") {
		t.Errorf("the log does not say what to do:\n%s", s.log)
	}
}

func TestCertificateOfDomain(t *testing.T) {
	t.Parallel()
	s := newDomainSite(t)
	domain := s.domain(t, s.one, s.account, "go.example.org")
	note := func(state schema.CertificateState) answer {
		state.Host, state.AttemptedAt = domain.Host, time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
		testkit.Must(t, s.links.NoteCertificate(t.Context(), state))
		return s.one.get(pathOf(domain))
	}
	note(schema.CertificateState{Error: "while it is not verified"}).lacks(t, "HTTPS", "while it is not verified")
	testkit.Must(t, s.links.VerifyDomain(t.Context(), domain.ID, time.Now()))
	failed := note(schema.CertificateState{Error: "<b>no such host</b>"})
	failed.want(t, 200, "could not be obtained", "no such host", "There is no certificate yet.", "20 Nov 2026")
	failed.lacks(t, "<b>no such")
	expiry := time.Now().UTC().AddDate(0, 2, 0)
	day := expiry.Format("2 Jan 2006")
	valid := note(schema.CertificateState{ExpiresAt: expiry})
	valid.want(t, 200, "is valid until", day, "will be renewed")
	valid.lacks(t, "could not be")
	late := note(schema.CertificateState{Error: "no answer"})
	late.want(t, 200, "could not be renewed", "no answer", day)
	late.lacks(t, "will be renewed")
	over := note(schema.CertificateState{ExpiresAt: time.Date(2026, time.January, 31, 12, 0, 0, 0, time.UTC)})
	over.want(t, 200, "The certificate expired on 31 Jan 2026")
	over.lacks(t, "valid until", "will be renewed")
}

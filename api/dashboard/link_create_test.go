package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestWithScheme(t *testing.T) {
	for text, want := range map[string]string{
		"example.com": "https://example.com", "example.com/a?b#c": "https://example.com/a?b#c",
		"example.com?x=http://y": "https://example.com?x=http://y",
		"example.com:8080/a":     "https://example.com:8080/a", "//example.com/a": "https://example.com/a",
		"192.0.2.1":      "https://192.0.2.1",
		"bücher.example": "https://bücher.example", "www.example.com#:x": "https://www.example.com#:x",
		"http://example.com": "http://example.com", "HTTPS://example.com": "HTTPS://example.com",
		"ftp://example.com":     "ftp://example.com",
		"javascript:alert(1.5)": "javascript:alert(1.5)", "mailto:you@example.com": "mailto:you@example.com",
		"you@example.com": "you@example.com", "example": "example", "two words.": "two words.", "": "", "a.b:x/": "a.b:x/",
		"/a.b": "/a.b",
	} {
		if got := dashboard.WithScheme(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Typed or pasted text arrives whole, and the service names each problem.
func TestTypedText(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	for _, path := range []string{"/dashboard", "/dashboard/links", "/dashboard/domains", "/dashboard/tokens",
		"/dashboard/account"} {
		for _, control := range regexp.MustCompile(`<(?:input|textarea)[^>]*>`).FindAllString(b.get(path).body, -1) {
			if found := regexp.MustCompile(` (maxlength|pattern|type="url"|type="email")`).FindString(control); found != "" {
				t.Errorf("%s: %s has%s", path, control, found)
			}
		}
	}
	long := "https://example.org/" + strings.Repeat("a", schema.MaxURLLen)
	b.post("/dashboard/links", "long_url", long).want(t, http.StatusUnprocessableEntity, "2048 characters")
	if !strings.Contains(b.seen.body, `value="`+long+`"`) {
		t.Error("the long URL does not come back whole")
	}
	b.post("/dashboard/links", "long_url", "https://example.org/", "custom_alias", strings.Repeat("a", 129)).want(t,
		http.StatusUnprocessableEntity, "The alias must have 1 to 128 characters")
	b.post("/dashboard/links", "long_url", "https://example.org/", "custom_alias", "Launch-1").want(t, http.StatusSeeOther)
	b.follow().want(t, http.StatusOK, "Your link is ready", "http://sho.rt/ launch-1", "so “Launch-1” became “launch-1”.")
	b.post("/dashboard/links", "long_url", "example.org/without?scheme", "custom_alias", "bare").want(t,
		http.StatusSeeOther)
	if link, err := schema.FindLink(t.Context(), s.links, 0, "bare"); err != nil ||
		link.URL != "https://example.org/without?scheme" {
		t.Errorf("%+v, %v", link, err)
	}
}

func TestNewLink(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	b.post("/dashboard/links", "long_url", "https://example.org/new", "custom_alias", "new", "back", "/dashboard/report").
		wantTo(t, "/dashboard/links/new?made=0.new")
	page := b.follow()
	page.want(t, http.StatusOK, "Your link is ready", "http://sho.rt/ new leads to https://example.org/new",
		"Copy Open QR code Statistics Create another")
	if strings.Contains(page.text(), "Destination") {
		t.Error("the form is still there")
	}
	s.addForeign(t)
	for _, made := range []string{"0.theirs", "0.none", "x.new", "-1.new", "0", "", ".", "0..", "9.new"} {
		page := b.get("/dashboard/links/new?made=" + made)
		page.want(t, http.StatusOK, "Destination")
		if strings.Contains(page.text(), "Your link is ready") {
			t.Errorf("%q is shown", made)
		}
	}
}

// Every page leads to the form of a new link, except the form itself.
func TestCreateAnywhere(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	for path, want := range map[string]int{"/dashboard": 1, "/dashboard/links?q=x": 1, "/dashboard/account": 1,
		"/dashboard/nothing": 1, "/dashboard/links/new": 0} {
		if n := strings.Count(b.get(path).body, ` id="create" href="/dashboard/links/new" data-create`); n != want {
			t.Errorf("%s has %d ways to a new link, want %d", path, n, want)
		}
	}
	if strings.Contains(s.browser(t).get("/dashboard/sign-in").body, "data-create") {
		t.Error("the sign-in leads to a new link")
	}
}

// The page of a new link shows the QR code that it would have.
func TestPreviewQR(t *testing.T) {
	s := start(t)
	domain, claimed := s.addDomain(t, "go.example.com", true), s.addDomain(t, "not-yet.example.com", false)
	s.addLink(t, "typed", "https://example.org/")
	theirs := s.addForeign(t)
	b := s.signedIn(t)
	const path = "/dashboard/preview.svg?custom_alias="
	first := b.get(path + "typed")
	testkit.Equal(t, "code of the alias", first.body, b.get("/dashboard/links/0/typed/qr.svg").body)
	testkit.Equal(t, "type", first.header.Get("Content-Type"), "image/svg+xml")
	testkit.Equal(t, "code of the alias in capitals", b.get(path+"Typed&domain_id=0").body, first.body)
	if b.get(path+"typed&domain_id="+id(domain.ID)).body == first.body {
		t.Error("the domain does not count")
	}
	for _, query := range []string{"", "ab", "a//b", "api", "typed&domain_id=" + id(claimed.ID), "typed&domain_id=99",
		"typed&domain_id=" + id(theirs.DomainID+77)} {
		testkit.Equal(t, "status of "+query, b.get(path+query).status, http.StatusNoContent)
	}
	testkit.Equal(t, "status without a session", s.browser(t).get(path+"typed").status, http.StatusSeeOther)
}

// A form that was typed before a session ended is filled in after the sign-in.
func TestTypedTextOutlastsTheSession(t *testing.T) {
	s := start(t)
	domain := s.addDomain(t, "go.example.com", true)
	tagged := schema.Link{AccountID: s.account.ID, Hash: "tagged", URL: "https://example.org/", Tags: []string{"old"},
		CreatedAt: time.Now().UTC()}
	testkit.Must(t, s.links.CreateLink(t.Context(), &tagged))
	for _, c := range []struct {
		path, page string
		form       url.Values
		shows      []string
	}{
		{"/dashboard/links", "/dashboard/links/new", url.Values{"long_url": {`https://example.org/a?b=c&d="e"#ü`},
			"custom_alias": {"my-alias"}, "back": {"/dashboard/links/new"},
			"domain_id": {id(domain.ID)}}, []string{`value="https://example.org/a?b=c&amp;d=&#34;e&#34;#ü"`,
			`value="my-alias"`, fmt.Sprintf(`<option value="%d" selected>`, domain.ID)}},
		{"/dashboard/bulk", "/dashboard/bulk", url.Values{"links": {"https://example.org/1 one\nexample.org/2"},
			"tags": {"a b"}, "domain_id": {id(domain.ID)}},
			[]string{">https://example.org/1 one\nexample.org/2</textarea>", `value="a b"`,
				fmt.Sprintf(`<option value="%d" selected>`, domain.ID)}},
		{"/dashboard/tags/old/rename", "/dashboard/tags/old", url.Values{"new_tag": {"new"}}, []string{`value="new"`}},
		{"/dashboard/domains", "/dashboard/domains", url.Values{"host": {"new.example.com"}},
			[]string{`value="new.example.com"`}},
		{"/dashboard/tokens", "/dashboard/tokens", url.Values{"name": {"my script"}}, []string{`value="my script"`}},
	} {
		b := s.browser(t)
		c.form.Set("csrf", "of the session that has ended")
		b.send(http.MethodPost, c.path, c.form)
		b.follow().want(t, http.StatusOK, "What you typed is kept")
		next := regexp.MustCompile(`name="next" value="([^"]+)"`).FindStringSubmatch(b.seen.body)
		if next == nil || strings.Contains(next[1], "csrf") {
			t.Fatalf("%v: the sign-in leads to %q", c.form, next)
		}
		b.send(http.MethodPost, "/dashboard/sign-in", url.Values{"email": {email}, "password": {password},
			"next": {html.UnescapeString(next[1])}})
		page := b.follow()
		page.want(t, http.StatusOK)
		if to, _, _ := strings.Cut(b.at, "?"); to != c.page {
			t.Errorf("%v leads to %s, want %s", c.form, to, c.page)
		}
		for _, part := range c.shows {
			if !strings.Contains(page.body, part) {
				t.Errorf("%v: no %s in\n%s", c.form, part, page.body)
			}
		}
		wantHarmless(t, page)
	}
	t.Run("and leads back to the page of the form", func(t *testing.T) {
		b := s.browser(t)
		for path, page := range map[string]string{"/dashboard/links/0/x/delete": "/dashboard/links/0/x",
			"/dashboard/links/0/x/active": "/dashboard/links/0/x",
			"/dashboard/tags/x/delete":    "/dashboard/tags/x", "/dashboard/account/password": "/dashboard/account",
			"/dashboard/import": "/dashboard/import"} {
			b.send(http.MethodPost, path, url.Values{}).wantTo(t, "/dashboard/sign-in?notice=ended&next="+url.QueryEscape(page))
		}
		b.send(http.MethodPost, "/dashboard/links/0/x/active", url.Values{"back": {"/dashboard/links?q=x"}}).wantTo(t,
			"/dashboard/sign-in?notice=ended&next="+url.QueryEscape("/dashboard/links?q=x"))
		b.send(http.MethodPost, "/dashboard/links/0/x/active", url.Values{"back": {"https://evil.example/"}}).wantTo(t,
			"/dashboard/sign-in?notice=ended&next="+url.QueryEscape("/dashboard/links/0/x"))
	})
	t.Run("except secrets, and text that is too long for an address", func(t *testing.T) {
		b := s.browser(t)
		for path, form := range map[string]url.Values{
			"/dashboard/links":            {"long_url": {"https://example.org/" + strings.Repeat("%", 2000)}},
			"/dashboard/domains":          {"host": {strings.Repeat("x", 8<<10)}},
			"/dashboard/account/password": {"current": {password}, "new": {"another password"}},
			"/dashboard/tokens":           {},
			"/dashboard/bulk":             {"links": {strings.Repeat("https://example.org/\n", 400)}},
		} {
			to := b.send(http.MethodPost, path, form).header.Get("Location")
			if want := "/dashboard/sign-in?notice="; !strings.HasPrefix(to, want) || strings.Contains(to, "pass") ||
				len(to) > 200 {
				t.Errorf("%s leads to %s", path, to)
			}
		}
		_, total, err := s.links.Links(t.Context(), s.account.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "links", total, 1)
	})
}

func TestPager(t *testing.T) {
	s := start(t)
	for i := range 41 {
		s.addLink(t, fmt.Sprintf("link-%02d", i), "https://example.org/")
	}
	b := s.signedIn(t)
	page := b.get("/dashboard/links?q=link-&page=2")
	page.want(t, http.StatusOK, "Page 2 of 3", "Go to page")
	search := regexp.MustCompile(`(?s)<form class="row" method="get" action="/dashboard/links">.*?</form>`)
	form := search.FindString(page.body)
	if !strings.Contains(form, `name="q" value="link-"`) || !strings.Contains(form, `name="page"`) {
		t.Errorf("the form for another page is %q", form)
	}
	if strings.Contains(b.get("/dashboard/links?q=link-0").text(), "Go to page") {
		t.Error("one page has a form for another one")
	}
}

func TestDuplicate(t *testing.T) {
	s := start(t)
	link, foreign := s.addLink(t, "first", "https://example.org/a?utm_source=mail"), s.addForeign(t)
	testkit.Must(t, s.links.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: new("The first"),
		Tags: &[]string{"one", "two"}, PasswordHash: new("secret")}, link.CreatedAt))
	b := s.signedIn(t)
	page := b.get("/dashboard/links/new?from=0.first")
	for _, want := range []string{`value="https://example.org/a?utm_source=mail"`, `value="The first"`,
		`value="one two"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the form does not have %s", want)
		}
	}
	for _, secret := range []string{`value="first"`, "has a password"} {
		if strings.Contains(page.body, secret) {
			t.Errorf("the form has %s", secret)
		}
	}
	if page := b.get("/dashboard/links/new?from=0." + foreign.Hash); strings.Contains(page.body, foreign.URL) {
		t.Error("the form has a link of another account")
	}
}

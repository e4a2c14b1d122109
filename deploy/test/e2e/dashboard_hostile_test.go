package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// hostile calls the canary if a page includes it without escaping, whether in text, in an attribute or in a script.
const hostile = `'"><img/src=x/onerror=canary(1)><script>canary(2)</script>`

// Texts of users and of visitors' browsers are shown unchanged and never run as code.
func TestDashboardHostileTexts(t *testing.T) {
	t.Parallel()
	s := startSystem(t, "LINKSTREAM_API_SIGNUP=open")
	b := s.tab(t, withAgent("Mozilla/5.0 "+hostile)).signIn(s)
	b.run("name of a token", func(t *testing.T) {
		b.sees("API settings", "Create a token")
		b.fill("Name", hostile)
		b.sees("Create token", "“"+hostile+"”")
		b.page("/dashboard/tokens")
		b.shows(hostile)
		b.press("Revoke " + hostile)
		b.sees("Revoke it", "The token “"+hostile+"” was revoked.")
	})
	b.run("long URL", func(t *testing.T) {
		address := "https://example.org/" + hostile + "?{{.CSRF}}&amp;#"
		b.sees("Links", "No links yet")
		b.fill("Long URL", address)
		b.fill("Alias optional", "hostile")
		b.sees("Create link", "Your link is ready", address)
		b.page("/dashboard/links/0/hostile")
		b.shows(address)
	})
	b.run("rejected fields of a link", func(t *testing.T) {
		b.page("/dashboard/links")
		b.press("Create link")
		b.fill("Long URL", "javascript:canary(3)//"+hostile)
		b.fill("Alias optional", hostile)
		if status := b.follow("Create link"); status != http.StatusUnprocessableEntity {
			t.Errorf("answered with %d", status)
		}
		if got := b.value("Alias optional"); got != hostile {
			t.Errorf("the alias is %q now", got)
		}
	})
	b.run("search", func(t *testing.T) {
		b.page("/dashboard/links?q=" + url.QueryEscape(hostile+hostile))
		b.shows("No links match “" + hostile + hostile + "”")
		b.page("/dashboard/links?q=" + url.QueryEscape(hostile))
		b.shows("1 link with “" + hostile + "”")
		b.page("/dashboard/links?page=" + url.QueryEscape(hostile))
	})
	b.run("name of a domain, where none can be added", func(t *testing.T) {
		b.sees("Domains", "This needs a public host name")
		b.page("/dashboard/domains?host=" + url.QueryEscape(hostile))
	})
	b.run("headers of visitors", func(t *testing.T) {
		for _, referrer := range []string{"https://" + hostile + ".example/", "https://example.net/" + hostile, hostile} {
			s.click(t, "hostile", "User-Agent", "Mozilla/5.0 "+hostile, "Referer", referrer)
		}
		b.page("/dashboard/links/0/hostile")
		b.shows("3 clicks since", "All clicks counted")
		b.page("/dashboard")
		b.shows("7 days 3")
	})
	b.run("session of a browser", func(t *testing.T) {
		b.page("/dashboard/account")
		b.shows("This browser")
	})
	b.run("paths", func(t *testing.T) {
		for _, path := range []string{"/x" + hostile, "/links/0/" + hostile, "/domains/" + hostile} {
			status := b.open("/dashboard" + strings.ReplaceAll(url.PathEscape(path), "%2F", "/"))
			if status != http.StatusNotFound {
				t.Errorf("%s is answered with %d", path, status)
			}
		}
	})
	t.Run("email addresses", func(t *testing.T) {
		b := s.tab(t)
		b.page("/dashboard/sign-up")
		b.fill("Email address", hostile)
		b.fill("Password", "eight of them")
		if status := b.follow("Create account"); status != http.StatusUnprocessableEntity {
			t.Errorf("answered with %d", status)
		}
		if got := b.value("Email address"); got != hostile {
			t.Errorf("the email address is %q now", got)
		}
		const email = `'"><svg/onload=canary(4)>@example.org`
		b.fill("Email address", email)
		b.fill("Password", "eight of them")
		b.sees("Create account", "Your account is ready.")
		b.page("/dashboard/account")
		b.shows(email)
	})
	t.Run("the page after the sign-in", func(t *testing.T) {
		b := s.tab(t)
		for _, next := range []string{"javascript:canary(5)", "//elsewhere.example/", `/\elsewhere.example`} {
			b.page("/dashboard/sign-in?next=" + url.QueryEscape(next))
			b.fill("Email address", s.email)
			b.fill("Password", s.password)
			b.sees("Sign in", "Overview")
			b.at("/dashboard")
			b.sees("Sign out", "You are signed out")
		}
	})
}

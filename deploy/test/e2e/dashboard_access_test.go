package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"

	"linkstream/schema/testkit"
)

// signIn signs in to the first account.
func (b *tab) signIn(s *system) *tab {
	b.t.Helper()
	b.page("/dashboard/sign-in")
	b.fill("Email address", s.email)
	b.fill("Password", s.password)
	if status := b.follow("Sign in"); status != http.StatusOK {
		b.t.Fatalf("sign-in answers %d: %s", status, b.text())
	}
	b.at("/dashboard")
	return b
}

func TestDashboardAccess(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	t.Run("only the right password signs in", func(t *testing.T) {
		b := s.tab(t)
		b.page("/") // redirects to the dashboard, which redirects to the sign-in
		b.at("/dashboard/sign-in")
		b.fill("Email address", s.email)
		b.fill("Password", "not the password")
		if status := b.follow("Sign in"); status != http.StatusUnprocessableEntity {
			t.Errorf("a wrong password is answered with %d", status)
		}
		b.shows("The email address or the password is wrong.")
		if email := b.value("Email address"); email != s.email {
			t.Errorf("the email address is %q now", email)
		}
		b.fill("Password", s.password)
		b.sees("Sign in", "Overview", "Sign out")
		for _, cookie := range b.cookies() {
			if !cookie.HTTPOnly || cookie.SameSite != "Lax" {
				t.Errorf("scripts can read cookie %s, or other sites send it", cookie.Name)
			}
		}
	})
	t.Run("a password is shown on request only", func(t *testing.T) {
		b := s.tab(t)
		b.page("/dashboard/sign-in")
		b.fill("Password", s.password)
		kind := func() string { return evaluate[string](b, `document.getElementById("password").type`) }
		if before := kind(); before != "password" {
			t.Errorf("the field is of type %s", before)
		}
		b.press("Show password")
		if after := kind(); after != "text" {
			t.Errorf("the field is of type %s after the request", after)
		}
	})
	t.Run("the requested page is shown after the sign-in", func(t *testing.T) {
		b := s.tab(t)
		b.page("/dashboard/tokens?x=1")
		b.fill("Email address", s.email)
		b.fill("Password", s.password)
		b.sees("Sign in", "API settings")
		b.at("/dashboard/tokens?x=1")
	})
	t.Run("after signing out no page is shown, not even by going back", func(t *testing.T) {
		b := s.tab(t).signIn(s)
		b.sees("API settings", "Create a token")
		b.sees("Sign out", "You are signed out.")
		b.back()
		b.hides("Create a token")
		for _, path := range []string{"", "/links", "/domains", "/tokens", "/account"} {
			b.page("/dashboard" + path)
			b.shows("Sign in")
			b.hides("Sign out")
		}
	})
	t.Run("another browser can end the session", func(t *testing.T) {
		one, other := s.tab(t).signIn(s), s.tab(t).signIn(s)
		other.page("/dashboard/account")
		other.sees("End all other sessions", "All other sessions were ended.")
		one.page("/dashboard/account")
		one.shows("Sign in")
		other.page("/dashboard/account")
		other.shows("This browser")
	})
	t.Run("sign-up is closed by default", func(t *testing.T) {
		b := s.tab(t)
		b.page("/dashboard/sign-in")
		b.hides("Make one")
		if status := b.open("/dashboard/sign-up"); status != http.StatusNotFound {
			t.Errorf("the sign-up answers %d", status)
		}
	})
}

// TestDashboardSessions is apart from TestDashboardAccess, because an account may sign in ten times per minute.
func TestDashboardSessions(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	t.Run("an open page says that it is not up to date", func(t *testing.T) { staysHonest(t, s) })
	t.Run("what was typed outlasts the session, however long it is", func(t *testing.T) { keepsTyped(t, s) })
	t.Run("what was typed outlasts the session", func(t *testing.T) {
		b := s.tab(t).signIn(s)
		b.fill("Long URL", "www.example.org/typed")
		b.fill("Alias optional", "Typed")
		other := s.tab(t).signIn(s)
		other.page("/dashboard/account")
		other.sees("End all other sessions", "All other sessions were ended.")
		b.sees("Create link", "What you typed is kept")
		b.fill("Email address", s.email)
		b.fill("Password", s.password)
		b.sees("Sign in", "Overview", "Create a link")
		b.shows("What you typed is back. It is not saved yet.")
		b.sees("Create link", "Your link is ready", s.edge+"/typed", "leads to https://www.example.org/typed")
	})
	t.Run("a new password ends all other sessions", func(t *testing.T) { // last, because the others use the old password
		one, other := s.tab(t).signIn(s), s.tab(t).signIn(s)
		password := "another long password"
		change := func(current, again string) int {
			one.page("/dashboard/account")
			one.fill("Current password", current)
			one.fill("New password", password)
			one.fill("Repeat new password", again)
			return one.follow("Change password")
		}
		if status := change("wrong", "different"); status != http.StatusUnprocessableEntity {
			t.Errorf("a wrong password is answered with %d", status)
		}
		one.shows("This is not your password.", "The passwords do not match")
		if status := change(s.password, password); status != http.StatusOK {
			t.Errorf("the change is answered with %d", status)
		}
		one.shows("Your password was changed")
		other.page("/dashboard/account")
		other.shows("Sign in")
		other.hides(s.email)
		s.password = password
		s.tab(t).signIn(s)
	})
}

// staysHonest looks at a page while nobody sees it, while the service does not answer, and after the session has ended.
func staysHonest(t *testing.T, s *system) {
	b := s.tab(t).signIn(s)
	s.owner().Alias(t, "open", "https://example.org/")
	b.page("/dashboard/links/0/open")
	b.shows("0 clicks since", "All clicks counted")
	evaluate[bool](b, `window.polls = 0, window.ask = fetch, window.fetch = (...all) => { polls++; return window.gone ? Promise.reject(new TypeError("gone")) : ask(...all); },
		Object.defineProperty(document, "hidden", { get: () => window.away }), true`)
	away := func(is bool) {
		evaluate[bool](b, fmt.Sprintf(`window.away = %t, document.dispatchEvent(new Event("visibilitychange"))`, is))
	}
	away(true)
	polls := evaluate[int](b, "polls")
	s.click(t, "open")
	s.owner().WaitTotal(t, "open", 1)
	b.shows("0 clicks since")
	if now := evaluate[int](b, "polls"); now != polls {
		t.Errorf("a page that nobody sees has asked %d times", now-polls)
	}
	away(false)
	b.shows("1 click since", "All clicks counted")

	b.press("Pause updates")
	b.shows("Resume updates", "Updates are paused. The numbers are those of")
	s.click(t, "open")
	s.owner().WaitTotal(t, "open", 2)
	b.shows("1 click since")
	b.press("Resume updates")
	b.shows("Pause updates", "2 clicks since", "All clicks counted")
	b.hides("Updates are paused.")
	polls = evaluate[int](b, "polls")
	s.click(t, "open")
	b.shows("3 clicks since")
	if now := evaluate[int](b, "polls"); now > polls+5 {
		t.Errorf("a page with a stream has asked %d times", now-polls)
	}

	evaluate[bool](b, "window.gone = true")
	b.shows("The service does not answer. The numbers are those of", "3 clicks since")
	b.hides("All clicks counted")
	evaluate[bool](b, "window.gone = false, true")
	b.shows("All clicks counted")
	b.hides("The service does not answer.")
	other := s.tab(t).signIn(s)
	other.page("/dashboard/account")
	other.sees("End all other sessions", "All other sessions were ended.")
	b.shows("Your session has ended. The numbers are those of")
	b.hides("All clicks counted")
	b.sees("Sign in again", "Email address")
}

// keepsTyped sends a form that is longer than an address can be, after the session has ended.
func keepsTyped(t *testing.T, s *system) {
	b := s.tab(t)
	call1(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
	b.signIn(s)
	b.sees("Report", "Days are in Asia/Tokyo") // the browser's time zone, without being asked
	b.page("/dashboard/bulk")
	lines := strings.Repeat("https://example.org/a-line-of-many\n", 400) + "nothing"
	b.fill("Long URLs, one per line", lines)
	b.fill("Tags optional, for all these links", "typed")
	call1(b, network.ClearBrowserCookies, cdp.Empty{})
	b.sees("Create links", "Your session had ended, so nothing was changed.")
	b.fill("Email address", s.email)
	b.fill("Password", s.password)
	b.sees("Sign in", "Create many links")
	if text, tags := b.value("Long URLs, one per line"), b.value("Tags optional, for all these links"); text != lines || tags != "typed" {
		t.Errorf("the form has %d characters and the tags %q", len(text), tags)
	}
	b.press("Discard it")
	b.page("/dashboard/bulk")
	if text := b.value("Long URLs, one per line"); text != "" {
		t.Errorf("the form has %d characters that were discarded", len(text))
	}
}

func TestDashboardSignUp(t *testing.T) {
	t.Parallel()
	s := startSystem(t, "LINKSTREAM_API_SIGNUP=open")
	b := s.tab(t)
	b.page("/dashboard/sign-in")
	b.sees("Create one", "Create an account")
	b.fill("Email address", "new@example.org")
	b.fill("Password", "eight of them")
	b.sees("Create account", "Your account is ready.", "Overview")
	b.page("/dashboard/account")
	b.shows("new@example.org")
}

func TestDashboardTokens(t *testing.T) {
	t.Parallel()
	onBothKinds(t, func(t *testing.T, s *system) {
		b := s.tab(t).signIn(s)
		b.sees("API settings", "Create a token")
		b.fill("Name", "backup script")
		b.sees("Create token", "Your new token", "is shown only once")
		token := b.value("Token")
		by := caller{API: s.api, Token: token}
		by.Page(t, "") // requires status 200
		b.do(reload())
		b.shows("API settings", "backup script")
		b.hides(token)
		b.press("Revoke backup script")
		b.sees("Revoke it", "The token “backup script” was revoked.")
		testkit.Succeeds(t, func() error { return by.Get(t, "/api/v1/links").IsStatus(http.StatusUnauthorized) })
	})
}

//go:build engines

package e2e_test

import (
	"fmt"
	"linkstream/schema/testkit"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
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

// TestDashboardSessions has what a browser does while a session lasts, and after its end.
func TestDashboardSessions(t *testing.T) {
	t.Parallel()
	s := startStandalone(t)
	t.Run("an open page says that it is not up to date", func(t *testing.T) { staysHonest(t, s) })
	t.Run("what was typed outlasts the session, however long it is", func(t *testing.T) { keepsTyped(t, s) })
	t.Run("a password is shown on request only", func(t *testing.T) {
		b := s.tab(t)
		b.page("/dashboard/sign-in")
		b.fill("Password", s.password)
		kind := func() string { return evaluate[string](b, `document.getElementById("password").type`) }
		testkit.Equal(t, "type of the field", kind(), "password")
		b.press("Show password")
		testkit.Equal(t, "type of the field after the request", kind(), "text")
	})
	t.Run("after signing out no page is shown by going back", func(t *testing.T) {
		b := s.tab(t).signIn(s)
		b.press("Account: " + s.email)
		b.sees("API tokens", "Create a token")
		b.press("Account: " + s.email)
		b.sees("Sign out", "You are signed out.")
		b.back()
		b.hides("Create a token")
	})
}

// staysHonest looks at a page while nobody sees it, while the service does not answer, and after the session has ended.
func staysHonest(t *testing.T, s *system) {
	b := s.tab(t).signIn(s)
	s.owner().Alias(t, "open", "https://example.org/")
	b.page("/dashboard/links/0/open")
	b.shows("0 clicks since", "Up to date")
	evaluate[bool](b, `window.polls = 0, window.ask = fetch,
		window.fetch = (...all) => { polls++; return window.gone ? Promise.reject(new TypeError("gone")) : ask(...all); },
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
	b.shows("1 click since", "Up to date")

	b.press("Live · Pause")
	b.shows("Paused · Resume", "Updates are paused. The numbers are those of")
	s.click(t, "open")
	s.owner().WaitTotal(t, "open", 2)
	b.shows("1 click since")
	b.press("Paused · Resume")
	b.shows("Live · Pause", "2 clicks since", "Up to date")
	b.hides("Updates are paused.")
	polls = evaluate[int](b, "polls")
	s.click(t, "open")
	b.shows("3 clicks since")
	if now := evaluate[int](b, "polls"); now > polls+5 {
		t.Errorf("a page with a stream has asked %d times", now-polls)
	}

	evaluate[bool](b, "window.gone = true")
	b.shows("The service does not answer. The numbers are those of", "3 clicks since")
	b.hides("Up to date")
	evaluate[bool](b, "window.gone = false, true")
	b.shows("Up to date")
	b.hides("The service does not answer.")
	other := s.tab(t).signIn(s)
	other.page("/dashboard/account")
	other.sees("Sign out everywhere else", "All other sessions were signed out.")
	b.shows("Your session has ended. The numbers are those of")
	b.hides("Up to date")
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
	b.fill("Destinations, one per line", lines)
	b.fill("Tags optional, for all these links", "typed")
	call1(b, network.ClearBrowserCookies, cdp.Empty{})
	b.sees("Create links", "Your session ended, and nothing was changed.")
	b.fill("Email address", s.email)
	b.fill("Password", s.password)
	b.sees("Sign in", "Create many links")
	if text := b.value("Destinations, one per line"); text != lines {
		t.Errorf("the form has %d characters", len(text))
	}
	testkit.Equal(t, "tags", b.value("Tags optional, for all these links"), "typed")
	b.press("Discard")
	b.page("/dashboard/bulk")
	if text := b.value("Destinations, one per line"); text != "" {
		t.Errorf("the form has %d characters that were discarded", len(text))
	}
}

//go:build engines

package e2e_test

import (
	"linkstream/schema/testkit"
	"net/http"
	"net/url"
	"testing"
)

// hostile calls the canary if a page includes it without escaping, whether in text, in an attribute or in a script.
const hostile = `'"><img/src=x/onerror=canary(1)><script>canary(2)</script>`

// TestDashboardHostileTexts requires that the script does not run as code what it writes into pages.
// TestWhatPeopleWriteIsEscaped of package dashboard has the pages themselves.
func TestDashboardHostileTexts(t *testing.T) {
	t.Parallel()
	s := startStandalone(t)
	b := s.tab(t, withAgent("Mozilla/5.0 "+hostile)).signIn(s)
	target := "https://example.org/" + hostile + "?{{.CSRF}}&amp;#"
	s.owner().Shorten(t, object{"long_url": target, "custom_alias": "hostile", "title": hostile, "tags": []string{"a"}}).
		Want(t, http.StatusCreated)
	b.run("a link and its row", func(t *testing.T) {
		b.page("/dashboard/links?q=" + url.QueryEscape(hostile))
		b.shows("1 link with “"+hostile+"”", hostile)
		b.press("Actions for " + address(s.edge) + "/hostile")
		b.sees("Switch off", "is switched off", "Undo")
		b.sees("Undo", "is switched on")
	})
	b.run("rejected fields", func(t *testing.T) {
		b.page("/dashboard/links")
		b.press("Create link")
		b.fill("Destination", "javascript:canary(3)//"+hostile)
		b.fill("Alias optional", hostile)
		b.press("Create link")
		b.shows("Please correct the marked fields.")
		testkit.Equal(t, "alias", b.value("Alias optional"), hostile)
	})
	b.run("headers of visitors, on open pages", func(t *testing.T) {
		b.page("/dashboard/links/0/hostile")
		b.shows("0 clicks since")
		for _, referrer := range []string{"https://" + hostile + ".example/", "https://example.net/" + hostile, hostile} {
			s.click(t, "hostile", "User-Agent", "Mozilla/5.0 "+hostile, "Referer", referrer)
		}
		b.shows("3 clicks since", "Up to date")
		b.page("/dashboard")
		b.shows("7 days 3")
	})
	b.run("rules in the form, and its preview", func(t *testing.T) {
		b.page("/dashboard/links/0/hostile/edit")
		b.press("Targeting rules, variants")
		b.press("Add a rule")
		b.shows("Rule 1")
		b.fill("Name optional", hostile)
		b.press("Add a rule")
		b.shows("Rule 2")
		b.press("Preview the card that chats show")
		b.fill("Title", hostile)
		b.shows(hostile)
	})
}

//go:build engines

package e2e_test

import (
	"linkstream/schema/testkit"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestDashboardBehaviour gives a link rules and variants. The buttons change the form on the same page.
func TestDashboardBehaviour(t *testing.T) {
	t.Parallel()
	s := startStandalone(t, longCaches)
	s.owner().Alias(t, "ruled", "https://example.org/")
	b := s.tab(t).signIn(s)
	b.page("/dashboard/links/0/ruled/edit")
	evaluate[bool](b, "window.stays = true")
	value := func(id string) string {
		return evaluate[string](b, `document.getElementById("`+id+`")?.value ?? "none"`)
	}
	awaitValue := func(id, want string) {
		t.Helper()
		testkit.Succeeds(t, func() error { return testkit.Mismatch(id, value(id), want) })
	}
	b.press("Behaviour: password, limit, rules, variants, preview")
	b.press("Add variants")
	b.shows("Variant 2")
	b.press("Remove Variant 2")
	testkit.Succeeds(t, func() error { // the script has replaced the rows
		return testkit.Mismatch("there is a second variant", strings.Contains(b.text(), "Variant 2"), false)
	})
	b.press("Remove Variant 1")
	b.find("Add variants")
	b.press("Add a rule")
	b.shows("Rule 1")
	b.fill("Name", "phones")
	b.press("Add a rule")
	b.shows("Rule 2")
	evaluate[string](b, `document.getElementById("rules.1.name").value = "late"`)
	b.press("Move up Rule 2")
	awaitValue("rules.0.name", "late")
	b.press("Move down Rule 1")
	awaitValue("rules.0.name", "phones")
	b.press("Remove Rule 2")
	b.find("Add a rule")
	awaitValue("rules.1.name", "none")
	if !evaluate[bool](b, "window.stays === true") {
		t.Error("the buttons lead to another page")
	}
	b.fill("Title", "A card for chats")
	b.shows("A card for chats")
	b.fill("Redirect to", "example.org/phones")
	b.fill("Devices", "mobile")
	b.load(chromedp.KeyEvent(kb.Enter)) // as Save does
	b.shows("was saved.")
	s.redirects(t, "/ruled", "https://example.org/phones", "User-Agent", phone)
}

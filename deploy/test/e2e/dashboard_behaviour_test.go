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
	b.press("Targeting rules, variants")
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
	b.fill("Name optional", "phones")
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
	b.fill("Redirect to", "example.org/phones")
	b.press("Phones")
	b.press("Add a condition to Rule 1")
	b.shows("Operating systems")
	b.press("Preview the card that chats show")
	b.fill("Title", "A card for chats")
	b.load(chromedp.KeyEvent(kb.Enter)) // as Save does
	b.shows("was saved.")
	s.redirects(t, "/ruled", "https://example.org/phones", "User-Agent", phone)
}

// TestDashboardDrawer edits a link beside its page and beside the list: neither is loaded again.
func TestDashboardDrawer(t *testing.T) {
	t.Parallel()
	s := startStandalone(t, longCaches)
	s.owner().Alias(t, "drawn", "https://example.org/")
	b := s.tab(t).signIn(s)
	for _, page := range []struct {
		path, next string
		menu       bool
	}{{path: "/dashboard/links/0/drawn", next: "https://example.org/1"},
		{path: "/dashboard/links", next: "https://example.org/2", menu: true}} {
		b.page(page.path)
		evaluate[bool](b, "window.stays = true")
		open := func() {
			t.Helper()
			const link = `[...document.querySelectorAll("main a[href$='/edit']")].find((a) => a.textContent.trim() === "Edit")`
			evaluate[bool](b, link+".click(), true")
			b.shows("Edit the link")
		}
		closed := func() {
			t.Helper()
			testkit.Succeeds(t, func() error {
				return testkit.Mismatch("dialogs", evaluate[int](b, `document.querySelectorAll("dialog").length`), 0)
			})
		}
		open()
		b.do(chromedp.KeyEvent(kb.Escape))
		closed()
		open()
		b.do(chromedp.KeyEvent("no URL")) // in the field that has the focus
		b.press("Save")
		b.shows("Please correct the marked fields.")
		focus := evaluate[string](b, "document.activeElement.name")
		testkit.Equal(t, "the field with the focus", focus, "long_url")
		b.fill("Destination", page.next)
		b.press("Save")
		b.shows("was saved.")
		closed()
		b.shows(page.next)
		testkit.Equal(t, "path", evaluate[string](b, "location.pathname"), page.path)
		testkit.Equal(t, "the page stays", evaluate[bool](b, "window.stays === true"), true)
		focus = evaluate[string](b, "document.activeElement.textContent.trim()")
		if !page.menu && focus != "Edit" {
			t.Errorf("%q has the focus", focus)
		}
	}
}

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"linkstream/schema/testkit"
)

// TestDashboardBehaviour gives a link rules in a browser, with the script and without it.
func TestDashboardBehaviour(t *testing.T) {
	t.Parallel()
	s := startSystem(t, longCaches)
	s.owner().Alias(t, "with", "https://example.org/")
	s.owner().Alias(t, "without", "https://example.org/")
	save := func(b *tab, alias string) {
		b.t.Helper()
		b.fill("Redirect to", "example.org/phones")
		b.fill("Devices", "mobile")
		b.load(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error { // as Save does
			_, err := chromedp.KeyEvent(kb.Enter)(ctx, t)
			return err
		}))
		b.shows("was saved.")
		testkit.SucceedsWithin(t, pageWithin, func() error {
			if to := s.visit(t, http.MethodHead, "/"+alias, "User-Agent", phone).Header.Get("Location"); to != "https://example.org/phones" {
				return fmt.Errorf("phones are sent to %q", to)
			}
			return nil
		})
	}
	t.Run("without the script", func(t *testing.T) {
		b := s.tab(t, withoutScript).signIn(s)
		b.page("/dashboard/links/0/without/edit")
		b.press("Behaviour: password, limit, rules, variants, preview")
		b.sees("Add a rule", "Rule 1")
		b.fill("Name", "phones")
		b.sees("Add a rule", "Rule 2")
		b.sees("Remove Rule 2", "Rule 1")
		if name := b.value("Name"); name != "phones" {
			t.Errorf("the name is %q", name)
		}
		save(b, "without")
	})
	t.Run("with the script, on the same page", func(t *testing.T) {
		b := s.tab(t).signIn(s)
		b.page("/dashboard/links/0/with/edit")
		evaluate[bool](b, "window.stays = true")
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
		first := func(name string) {
			t.Helper()
			testkit.Succeeds(t, func() error {
				return testkit.Mismatch("first rule", evaluate[string](b, `document.getElementById("rules.0.name").value`), name)
			})
		}
		b.press("Move up Rule 2")
		first("late")
		b.press("Move down Rule 1")
		first("phones")
		b.press("Remove Rule 2")
		b.find("Add a rule")
		testkit.Succeeds(t, func() error {
			return testkit.Mismatch("there is a second rule", evaluate[bool](b, `document.getElementById("rules.1.name") !== null`), false)
		})
		if !evaluate[bool](b, "window.stays === true") {
			t.Error("the buttons lead to another page")
		}
		b.fill("Title", "A card for chats")
		b.shows("A card for chats")
		save(b, "with")
	})
}

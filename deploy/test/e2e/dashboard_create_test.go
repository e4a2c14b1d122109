//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"linkstream/schema/testkit"
)

// TestDashboardCreate creates links in the dialog that every page has, and takes the first steps of a new account.
func TestDashboardCreate(t *testing.T) {
	t.Parallel()
	s := startStandalone(t)
	b := s.tab(t).signIn(s)
	copied := func(t *testing.T, alias string) {
		t.Helper()
		b.shows("Your link is ready", "Copied to the clipboard.")
		testkit.Equal(t, "text that was copied", evaluate[string](b, "window.copied"), s.edge+"/"+alias)
	}
	b.run("the first link of an account takes two keys, and its steps tick themselves", func(t *testing.T) {
		b.page("/dashboard")
		b.watchesClipboard()
		b.hasFocus("Destination")
		evaluate[bool](b, "window.notReloaded = true")
		b.paste("example.org/first")
		b.key(kb.Enter)
		b.shows("Your link is ready")
		alias := evaluate[string](b, `document.querySelector("#made .alias").textContent`)
		copied(t, alias)
		b.key(kb.Escape)
		b.shows("Three steps", "Waiting for it.", address(s.edge)+"/"+alias)
		s.click(t, alias)
		b.shows("You are all set", "7 days 1")
		testkit.Equal(t, "page loads", evaluate[bool](b, "!window.notReloaded"), false)
	})
	b.run("the next ones, with an alias, take five", func(t *testing.T) {
		b.page("/dashboard/account")
		b.watchesClipboard()
		evaluate[*struct{}](b, `document.querySelector("footer a").focus(), null`)
		for _, step := range []struct{ open, alias string }{{"c", "by-key"}, {kb.Enter, "another"}} {
			b.key(step.open)
			b.hasFocus("Destination")
			b.paste("example.org/" + step.alias)
			b.key(kb.Tab)
			b.paste(step.alias)
			b.shows(fmt.Sprintf("%s/%s leads to https://example.org/%s", address(s.edge), step.alias, step.alias))
			b.key(kb.Enter)
			copied(t, step.alias)
			b.hasFocus("Create another")
		}
		b.key(kb.Escape)
		b.hasFocus("Change")
	})
	b.run("a refusal is shown in the dialog, and what was typed outlasts it", func(t *testing.T) {
		b.page("/dashboard/links")
		b.watchesClipboard()
		b.press("Create link")
		b.fill("Destination", "example.org/taken")
		b.fill("Alias optional", "another")
		b.key(kb.Enter)
		b.shows("already in use", "Please correct the marked fields.")
		b.hasFocus("Alias optional")
		b.fill("Alias optional", "free")
		b.key(kb.Escape)
		b.hasFocus("create")
		b.hides("Destination")
		b.press("Create link")
		testkit.Equal(t, "alias", b.value("Alias optional"), "free")
		b.press("Create link")
		copied(t, "free")
		b.press("Close")
		b.shows("4 links", address(s.edge)+"/free")
	})
	b.run("a browser that does not copy leaves a button", func(t *testing.T) {
		b.page("/dashboard/domains")
		evaluate[*struct{}](b, `(document.execCommand = () => false,
			navigator.clipboard.write = navigator.clipboard.writeText = () => Promise.reject(new Error()), null)`)
		b.press("Create link")
		b.fill("Destination", "example.org/refused")
		b.key(kb.Enter)
		b.shows("Your link is ready", "The browser did not let this page copy it.")
		b.find("Copy")
	})
	b.run("a service that does not answer loses nothing", func(t *testing.T) {
		b.page("/dashboard/domains")
		b.press("Create link")
		b.fill("Destination", "example.org/offline")
		evaluate[*struct{}](b, `(window.fetch = () => Promise.reject(new Error()), null)`)
		b.key(kb.Enter)
		b.shows("The service does not answer.")
		testkit.Equal(t, "long URL", b.value("Destination"), "example.org/offline")
	})
	b.run("without a script, the page does it", func(t *testing.T) {
		b := s.tab(t, withoutScript).signIn(s)
		b.page("/dashboard/report")
		b.follow("Create link")
		b.fill("Destination", "nothing")
		testkit.Equal(t, "status", b.follow("Create link"), http.StatusUnprocessableEntity)
		b.fill("Destination", "example.org/plain")
		b.follow("Create link")
		b.find("Create another")
	})
}

// watchesClipboard notes in window.copied what the page copies from now on. All tabs share the clipboard itself.
func (b *tab) watchesClipboard() {
	b.t.Helper()
	evaluate[*struct{}](b, `(() => {
		const write = navigator.clipboard.write.bind(navigator.clipboard);
		navigator.clipboard.write = async (items) => {
			await write(items);
			window.copied = await (await items[0].getType("text/plain")).text();
		};
		return null;
	})()`)
}

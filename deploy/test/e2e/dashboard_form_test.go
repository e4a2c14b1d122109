package e2e_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"

	"linkstream/schema/testkit"
)

// TestDashboardDrafts requires that what was typed survives what people and networks do.
func TestDashboardDrafts(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	const edit, kept = "/dashboard/links/0/survey/edit", "What you typed is back. It is not saved yet."
	has := func(name, text string) {
		b.t.Helper()
		if got := b.value(name); got != text {
			b.t.Errorf("%s has %q, want %q", name, got, text)
		}
	}
	b.run("a click elsewhere", func(t *testing.T) {
		b.page(edit)
		b.fill("Title optional", "Half a ti")
		b.sees("Domains", "Your domains")
		b.back()
		b.shows("Edit the link")
		has("Title optional", "Half a ti")
		b.page(edit)
		b.shows(kept)
		has("Title optional", "Half a ti")
		b.press("Discard it")
		has("Title optional", "")
		b.page(edit)
		b.hides(kept)
		has("Title optional", "")
	})
	b.run("a network that is gone", func(t *testing.T) {
		b.page(edit)
		b.fill("Title optional", "Typed in a tunnel")
		offline := func(is bool) {
			call1(b, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: is, DownloadThroughput: -1, UploadThroughput: -1})
			call1(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
				MatchedNetworkConditions: []network.Conditions{{Offline: is, DownloadThroughput: -1, UploadThroughput: -1}}})
		}
		offline(true)
		b.do(click(b.find("Save")))
		b.shows("No internet")
		offline(false)
		b.back()
		has("Title optional", "Typed in a tunnel")
		b.sees("Save", "was saved.", "Typed in a tunnel")
		b.page(edit)
		b.hides(kept)
	})
	b.run("another tab that deletes the link", func(t *testing.T) {
		b.page(edit)
		b.fill("Title optional", "For a link that is gone")
		if status := s.owner().Do(t, http.MethodDelete, "/api/v1/links/survey", nil).Status; status != http.StatusOK {
			t.Fatalf("the deletion answers %d", status)
		}
		if status := b.follow("Save"); status != http.StatusNotFound {
			t.Errorf("the edit answers %d", status)
		}
		b.shows("This link was deleted after you opened the form")
		has("Title optional", "For a link that is gone")
		has("Alias optional", "survey")
		b.sees("Create link", "Your link is ready", "For a link that is gone")
	})
	b.run("a slow network: the button says that it waits", func(t *testing.T) {
		b.page(edit)
		evaluate[*struct{}](b, `addEventListener("submit", (event) => event.preventDefault()), null`)
		b.press("Save")
		testkit.SucceedsWithin(t, pageWithin, func() error {
			return testkit.Unless(evaluate[string](b, `document.querySelector(".actions .button").ariaBusy`) == "true", "the button does not wait")
		})
	})
	for _, fault := range b.takeFaults() {
		t.Log(fault) // of the network
	}
}

// TestDashboardSpeaksAsItsReader requires one form of dates and numbers, that of the reader's language.
func TestDashboardSpeaksAsItsReader(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t, func(b *tab) {
		call1(b, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: desktop, AcceptLanguage: "de-AT"})
	}).signIn(s)
	b.page("/dashboard/links/0/launch")
	_ = b
}

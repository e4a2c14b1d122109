//go:build engines

package e2e_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"

	"linkstream/schema/testkit"
)

// TestDashboardDrafts requires that what was typed survives what people and networks do.
func TestDashboardDrafts(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	const edit, kept = "/dashboard/links/0/survey/edit", "Unsaved changes restored"
	has := func(name, text string) {
		b.t.Helper()
		if got := b.value(name); got != text {
			b.t.Errorf("%s has %q, want %q", name, got, text)
		}
	}
	b.run("a click elsewhere", func(t *testing.T) {
		b.page(edit)
		place := b.placeOf("#title")
		b.fill("Title optional", "Half a ti")
		b.sees("Domains", "Your domains")
		b.back()
		b.shows("Edit the link")
		has("Title optional", "Half a ti")
		b.page(edit)
		b.shows(kept)
		has("Title optional", "Half a ti")
		testkit.Equal(t, "place of the field", b.placeOf("#title"), place)
		b.press("Discard")
		has("Title optional", "")
		b.page(edit)
		b.hides(kept)
		has("Title optional", "")
	})
	b.run("a network that is gone", func(t *testing.T) {
		b.page(edit)
		b.fill("Title optional", "Typed in a tunnel")
		offline := func(is bool) {
			call1(b, network.OverrideNetworkState,
				network.OverrideNetworkStateParams{Offline: is, DownloadThroughput: -1, UploadThroughput: -1})
			call1(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
				MatchedNetworkConditions: []*network.Conditions{{Offline: is, DownloadThroughput: -1, UploadThroughput: -1}}})
		}
		offline(true)
		b.do(click(b.find("Save")))
		b.shows("ERR_INTERNET_DISCONNECTED")
		offline(false)
		b.page(edit)
		b.shows(kept)
		has("Title optional", "Typed in a tunnel")
		b.sees("Save", "was saved.", "Typed in a tunnel")
		b.page(edit)
		b.hides(kept)
	})
	b.run("another tab that deletes the link", func(t *testing.T) {
		b.page(edit)
		b.fill("Title optional", "For a link that is gone")
		other := s.tab(t).signIn(s)
		other.page(edit)
		other.sees("Delete link", "was deleted")
		if status := b.follow("Save"); status != http.StatusNotFound {
			t.Errorf("the edit answers %d", status)
		}
		b.shows("This link was deleted after you opened the form")
		has("Title optional", "For a link that is gone")
		has("Alias optional", "survey")
		b.sees("Create link", "Your link is ready")
		b.sees("Statistics", "For a link that is gone")
	})
	b.run("an alias is checked while it is typed, and a link renamed", func(t *testing.T) {
		b.page("/dashboard/links/new")
		b.fill("Destination", "https://example.org/")
		b.fill("Alias optional", "named")
		b.sees("Create link", "Your link is ready")
		for _, page := range []struct{ path, field string }{{"/dashboard/links/new", "Alias optional"},
			{"/dashboard/links/0/named/edit", "Alias"}} {
			b.page(page.path)
			for alias, problem := range map[string]string{"ab": "at least 3 characters", "a//b": "must have 1 to 128",
				"docs/x": "is reserved"} {
				b.fill(page.field, alias)
				b.shows(problem)
			}
			b.fill(page.field, "named-2") // the draft that stays
		}
		b.fill("Alias", "Named/2")
		b.sees("Rename", "/named is ", "/Named/2 now.", "Former names")
		b.page("/dashboard/links/0/named/edit") // leads to the link under its name
		has("Alias", "Named/2")
	})
	b.run("a form that was refused at another address than the page's, until it is taken", func(t *testing.T) {
		for _, c := range []struct{ page, field, wrong, right, button, next string }{
			{"/dashboard/account", "Time zone optional", "Vienna", "America/New_York", "Save time zone", "/dashboard/account"},
			{"/dashboard/tags/shop", "New name", "no tag", "store", "Rename", "/dashboard/tags/store"},
			{"/dashboard/domains/1", "Unknown links optional", "nothing", "https://example.org/", "Save",
				"/dashboard/domains/1"},
			{"/dashboard/links/new", "Destination", "nothing", "https://example.org/1", "Create link", "/dashboard/links/new"},
		} {
			b.page(c.page)
			b.fill(c.field, c.wrong)
			if status := b.follow(c.button); status != http.StatusUnprocessableEntity {
				t.Errorf("%s takes %q: %d", c.page, c.wrong, status)
			}
			has(c.field, c.wrong)
			b.hides(kept)
			b.sees("Overview", "Recent links") // a click elsewhere
			b.page(c.page)
			b.shows(kept)
			has(c.field, c.wrong)
			b.fill(c.field, c.right)
			b.sees(c.button)
			b.hides(kept)
			b.page(c.next)
			b.hides(kept)
			if text := b.value(c.field); text == c.wrong {
				t.Errorf("%s has %q again", c.next, text)
			}
		}
	})
	b.run("boxes that choose links are no draft", func(t *testing.T) {
		b.page("/dashboard/links")
		b.press("Actions for sho.example/newsletter")
		b.sees("Delete", "was deleted")
		b.page("/dashboard/trash")
		b.press("Select sho.example/newsletter")
		b.sees("Report", "Clicks on all links")
		b.page("/dashboard/trash")
		b.hides(kept)
	})
	b.run("a slow network: the button says that it waits", func(t *testing.T) {
		b.page(edit)
		evaluate[*struct{}](b, `addEventListener("submit", (event) => event.preventDefault()), null`)
		b.press("Save")
		testkit.SucceedsWithin(t, pageWithin, func() error {
			busy := evaluate[string](b, `document.querySelector(".actions .button").ariaBusy`)
			return testkit.Mismatch("aria-busy", busy, "true")
		})
	})
	for _, fault := range b.takeFaults() {
		t.Log(fault) // of the network
	}
}

// TestDashboardSpeaksEnglish requires English dates and numbers, whatever the browser prefers.
func TestDashboardSpeaksEnglish(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t, func(b *tab) {
		call1(b, emulation.SetUserAgentOverride,
			emulation.SetUserAgentOverrideParams{UserAgent: desktop, AcceptLanguage: "de-DE"})
	}).signIn(s)
	owner := caller{API: s.api, Token: s.admin(t, "token", "add", s.email)}
	created := func(hash string) time.Time {
		link := owner.Get(t, "/api/v1/links/"+hash).Want(t, http.StatusOK).Body["link"].(object)
		at, err := time.Parse(time.RFC3339, link["created_at"].(string))
		testkit.Must(t, err)
		return at
	}
	first := created("launch")
	last := first.AddDate(0, 0, 9)
	days := "from=" + first.Format(time.DateOnly) + "&to=" + last.Format(time.DateOnly)
	const foreign = `\d{4}-\d\d-\d\d|\d\.\d{3}|\d\/\d+\/|\d\. (Jan|Feb|März|Apr|Mai|Juni|Juli|Aug|Sept|Okt|Nov|Dez)`
	for path, texts := range map[string][]string{
		"/dashboard/links/0/launch?" + days: {english(first), english(last)},
		"/dashboard/links?q=handbook":       {english(created("handbook"))},
	} {
		b.page(path)
		b.shows(texts...)
		if other := evaluate[string](b, `document.body.innerText.match(/`+foreign+`/)?.[0] ?? ""`); other != "" {
			t.Errorf("%s has %q", path, other)
		}
	}
	total := evaluate[string](b, `fetch("/dashboard/links/0/launch").then((page) => page.text())
		.then((text) => text.match(/id="total">([^<]*)/)[1])`)
	if !regexp.MustCompile(`^\d,\d{3}$`).MatchString(total) {
		t.Errorf("the total is %q", total)
	}
}

// TestDashboardReportKeepsPlace chooses names and periods far down a report.
func TestDashboardReportKeepsPlace(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	b.size(375, 812)
	b.page("/dashboard/links/0/launch")
	place := func() float64 {
		return evaluate[float64](b, `[...document.querySelectorAll("h2")].find((e) => e.textContent === "Devices")
			.getBoundingClientRect().top`)
	}
	b.press("Browsers")
	evaluate[*struct{}](b, `[...document.querySelectorAll(".ranking button")].find((e) => e.textContent === "Firefox")
		.scrollIntoView({ block: "center" }), null`)
	for _, step := range []struct{ control, shows string }{
		{"Firefox", "Browser: Firefox remove"}, {"remove Firefox", "Browsers"}} {
		before := place()
		b.sees(step.control, step.shows)
		if after := place(); step.control == "Firefox" && (after < before-2 || after > before+2) {
			t.Errorf("%q takes the list from %v to %v", step.control, before, after)
		}
		top := evaluate[float64](b, `document.querySelector(".chips")?.getBoundingClientRect().top ?? 0`)
		if top < -1 || top > 100 {
			t.Errorf("the filters are at %v", top)
		}
	}
}

// TestDashboardPeriodKeepsPlace chooses periods of reports. The page scrolls only as far as its head has grown.
func TestDashboardPeriodKeepsPlace(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	place := func() float64 {
		return evaluate[float64](b, `document.querySelector("[data-stay=period]").getBoundingClientRect().top`)
	}
	for _, path := range []string{"/dashboard/report", "/dashboard/report?tag=newsletter", "/dashboard/links/0/launch"} {
		for _, size := range [][2]int64{{1280, 900}, {375, 812}} {
			b.size(size[0], size[1])
			b.page(path)
			for _, control := range []string{"7 days", "90 days", "Yesterday", "30 days"} {
				evaluate[*struct{}](b, `document.querySelector("[data-stay=period]").scrollIntoView({ block: "center" }), null`)
				before := place()
				b.sees(control, "Clicks per ")
				if after := place(); after < before-2 || after > before+2 {
					t.Errorf("%s, %d pixels: %q takes the periods from %v to %v", path, size[0], control, before, after)
				}
			}
		}
	}
}

// english returns a day as the dashboard writes it.
func english(day time.Time) string { return day.Format("Jan 2, 2006") }

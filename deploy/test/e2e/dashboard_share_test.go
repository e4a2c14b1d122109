//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

// TestDashboardShare shares reports in the dialog of each page that shows them: the page is not loaded again.
func TestDashboardShare(t *testing.T) {
	t.Parallel()
	s := startStandalone(t, longCaches)
	s.owner().Link(t, object{"long_url": "https://example.org/", "custom_alias": "sale", "tags": []string{"spring"}})
	b := s.tab(t).signIn(s)
	for _, page := range []struct{ path, menu, button, of string }{
		{"/dashboard/links/0/sale", "", "Share report", "/sale"},
		{"/dashboard/links", "Actions for " + address(s.edge) + "/sale", "Share", "/sale"},
		{"/dashboard/tags/spring", "", "Share", "links with the tag “spring”"},
		{"/dashboard/report?tag=spring", "", "Share", "links with the tag “spring”"},
		{"/dashboard/report", "", "Share", "all links"},
		{"/dashboard/shares", "", "Share a report", "all links"},
	} {
		b.page(page.path)
		evaluate[bool](b, "window.stays = true")
		if page.menu != "" {
			b.press(page.menu)
		}
		b.press(page.button)
		b.shows("Share the report of")
		title := evaluate[string](b, `document.querySelector("dialog h1").textContent`)
		if !strings.HasSuffix(title, page.of) {
			t.Errorf("%s shares %q", page.path, title)
		}
		b.fill("Password optional", "abc")
		b.press("Share")
		b.shows("Please correct the marked fields.")
		b.fill("Password optional", "")
		b.press("Share")
		b.shows("The report is shared")
		testkit.Equal(t, "the focus", evaluate[string](b, "document.activeElement.textContent"), "Copy")
		if address := b.value("Link"); !strings.Contains(address, "/dashboard/shared/") {
			t.Errorf("the address is %q", address)
		}
		b.do(chromedp.KeyEvent(kb.Escape))
		testkit.Succeeds(t, func() error {
			return testkit.Mismatch("dialogs", evaluate[int](b, `document.querySelectorAll("dialog").length`), 0)
		})
		b.at(page.path)
		testkit.Equal(t, "the page stays", evaluate[bool](b, "window.stays === true"), true)
	}
	testkit.Succeeds(t, func() error { // the list behind the last dialog has the new one
		return testkit.Mismatch("shared reports", evaluate[int](b, `document.querySelectorAll("main tbody tr").length`), 6)
	})
}

// TestDashboardWall shows a shared report on screens of several sizes: all of it is on each.
func TestDashboardWall(t *testing.T) {
	t.Parallel()
	axe := enginetest.AxeCore(t)
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	for _, of := range []string{"", "?hash=launch"} {
		b.page("/dashboard/shares/new" + of)
		b.sees("Share", "The report is shared")
		b.sees("Open the report", "Full screen")
		b.sees("Full screen", "Sources", "Places")
		for _, size := range [][2]int64{{1280, 720}, {1920, 1080}, {3840, 2160}, {1024, 768}} {
			b.size(size[0], size[1])
			hidden := evaluate[[]string](b, `[document.documentElement, ...document.querySelectorAll("main > *")]
				.filter((e) => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1)
				.map((e) => e.outerHTML.slice(0, 100))`)
			if len(hidden) > 0 {
				t.Errorf("%v: the screen does not show all of %q", size, hidden)
			}
		}
		b.passes(axe)
	}
}

// TestDashboardSharedPrints prints shared reports, each on one page of A4 or Letter.
func TestDashboardSharedPrints(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	for _, of := range []string{"", "?hash=launch", "?domain_id=1"} {
		b.page("/dashboard/shares/new" + of)
		b.sees("Share", "The report is shared")
		b.sees("Open the report", "Full screen")
		for paper, size := range map[string][2]float64{"A4": {8.27, 11.69}, "Letter": {8.5, 11}} {
			printed := call1(b, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: size[0], PaperHeight: size[1]})
			if found := pdfPages.FindSubmatch(printed.Data); found == nil || string(found[1]) != "1" {
				t.Errorf("the report of %q has more than a page of %s: %s", of, paper, found)
			}
		}
	}
	call1(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	b.shows("go.example.org Report", "Times are in", "Devices")
	b.hides("Full screen")
}

// TestDashboardWallStays has a wall open while clicks come, while nobody answers, and until the report is not shared.
func TestDashboardWallStays(t *testing.T) {
	t.Parallel()
	s := startStandalone(t)
	owner := s.owner()
	owner.Alias(t, "sale", "https://example.org/")
	name, address := owner.Share(t, `{"hash":"sale"}`)
	shared, err := url.Parse(address)
	testkit.Must(t, err)
	b := s.tab(t)
	b.page(shared.Path + "?wall")
	evaluate[bool](b, "window.stays = true")
	shows := func(text string) {
		t.Helper()
		testkit.SucceedsWithin(t, time.Minute, func() error {
			if shown := b.text(); !strings.Contains(shown, text) {
				return fmt.Errorf("the wall does not show %q: %s", text, shown)
			}
			return nil
		})
	}
	s.click(t, "sale")
	shows("Clicks 1")
	evaluate[bool](b, "window.answers = fetch, window.fetch = () => Promise.reject(), true")
	shows("The service does not answer")
	evaluate[bool](b, "window.fetch = answers, true")
	s.click(t, "sale")
	shows("Clicks 2")
	b.hides("The service does not answer")
	owner.Call(t, http.MethodDelete, name, "").Want(t, http.StatusOK)
	shows("This report is not shared")
	testkit.Equal(t, "the page stays", evaluate[bool](b, "window.stays === true"), true)
	b.takeFaults() // the answer of status 404
}

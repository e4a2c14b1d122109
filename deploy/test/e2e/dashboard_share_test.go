//go:build engines

package e2e_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

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

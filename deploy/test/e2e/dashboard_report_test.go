//go:build engines

package e2e_test

import (
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"linkstream/schema/testkit"
)

// TestDashboardReportTabs chooses lists of a report by tabs. Neither new numbers nor a filter close them.
func TestDashboardReportTabs(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	b.page("/dashboard/report")
	b.press("Countries")
	b.shows("Germany")
	for _, move := range []struct{ key, shows string }{{kb.ArrowRight, "German"}, {kb.End, "Busiest"}, {kb.ArrowRight, ""},
		{kb.ArrowLeft, "Busiest"}, {kb.ArrowLeft, "German"}, {kb.Home, ""}, {kb.ArrowRight, "Austria"}} {
		b.do(chromedp.KeyEvent(move.key))
		b.shows(move.shows)
	}
	b.hides("Busiest")
	b.press("Tags") // are counted when somebody asks for them
	b.shows("newsletter", "A click counts for each tag of its link.")
	b.press("Browsers")
	shown := evaluate[string](b, `document.querySelector(".figure dd").textContent`)
	s.click(t, "launch", "User-Agent", desktop)
	testkit.Eventually(t, "there are new numbers", func() bool {
		return evaluate[string](b, `document.querySelector(".figure dd").textContent`) != shown
	})
	b.shows("Austria", "Firefox", "A click counts for each tag of its link.")
	if focus := evaluate[string](b, "document.activeElement.textContent"); focus != "Browsers" {
		t.Errorf("the focus is on %q after new numbers", focus)
	}
	b.sees("Austria", "Country: Austria remove", "Firefox")
	b.page("/dashboard/links/0/launch")
	b.shows("Austria", "Firefox")

	plain := s.tab(t, withoutScript).signIn(s)
	plain.page("/dashboard/report")
	plain.shows("Map of countries", "Austria", "Firefox", "Busiest")
	plain.sees("Count clicks by tag and by domain", "No tag", "go.example.org")
}

var pdfPages = regexp.MustCompile(`/Type /Pages\s+/Count (\d+)`)

// TestDashboardReportPrints prints reports on A4.
func TestDashboardReportPrints(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	for _, path := range []string{"/dashboard/report", "/dashboard/report?tag=newsletter&domain_id=0&country=DE",
		"/dashboard/links/0/launch?device=mobile"} {
		b.page(path)
		printed := call1(b, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69})
		if found := pdfPages.FindSubmatch(printed.Data); found == nil || string(found[1]) != "1" {
			t.Errorf("%s has more than a page: %s", path, found)
		}
	}
	call1(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	b.shows("Device: Mobile", "Devices")
	b.hides("Live · Pause")
}

// TestDashboardReportFits measures the report of an account on a laptop's screen, with each of its lists.
func TestDashboardReportFits(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	b.size(1440, 900)
	b.page("/dashboard/report")
	for _, tab := range evaluate[[]string](b, `[...document.querySelectorAll(".cards [role=tab]")].map((e) => e.id)`) {
		height := evaluate[int](b, `document.getElementById("`+tab+`").click(), document.documentElement.scrollHeight`)
		if height > 1600 {
			t.Errorf("the page has %d pixels with %s", height, tab)
		}
	}
	if y := evaluate[float64](b, `document.querySelector(".cards").getBoundingClientRect().top + scrollY`); y > 900 {
		t.Errorf("the lists begin at %v", y)
	}
}

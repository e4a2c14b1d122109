package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestReportCards(t *testing.T) {
	s := start(t)
	link, other := s.addLink(t, "sale", "https://example.org/"), s.addLink(t, "other", "https://example.org/")
	for i := range 9 {
		s.count(t, click{link: link, at: s.now(), times: 20 - i, browser: fmt.Sprint("Browser ", i)})
	}
	s.count(t, click{link: link, at: s.now(), times: 1, country: "DE", route: "rule"})
	s.count(t, click{link: other, at: s.now(), times: 1})
	b := s.signedIn(t)

	t.Run("have lists by subject", func(t *testing.T) {
		page := b.get("/dashboard/report")
		page.want(t, http.StatusOK)
		text := page.text()
		for _, title := range []string{"Sources Referrers", "Links Top links", "Rules and variants", "Places Map",
			"Countries", "Languages", "When people click", "Devices Devices", "Browsers", "Operating systems"} {
			at := strings.Index(text, title+" ")
			if at < 0 {
				t.Fatalf("no %q, or not in this order: %s", title, page.text())
			}
			text = text[at:]
		}
	})
	t.Run("have eight rows, and all of them elsewhere", func(t *testing.T) {
		b.get("/dashboard/report").want(t, http.StatusOK, "Browser 6 10% 14 Others 18% 27 All 10 browsers")
		b.get("/dashboard/report?limit=1000").want(t, http.StatusOK, "Browser 8 8% 12")
		b.seen.lacks(t, "All 10 browsers")
	})
	t.Run("are four, of a link without rules too", func(t *testing.T) {
		for path, want := range map[string]string{"/dashboard/links/0/other": "When people click Mon",
			"/dashboard/links/0/sale": "Links Rules and variants"} {
			page := b.get(path)
			page.want(t, http.StatusOK, want)
			if n := strings.Count(page.body, "data-tabs="); n != 4 {
				t.Errorf("%s: %d cards", path, n)
			}
		}
	})
}

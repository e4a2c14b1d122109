package dashboard_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"linkstream/schema"
)

var shownFigure = regexp.MustCompile(`<dt><a href="\?[^"]*" aria-current="true">([^<]*)<`)

// The figures are the chart's tabs, and what is shown is kept by all that leads to the report.
func TestFigures(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	s.count(t, click{link: link, at: s.now(), times: 12, visitor: 1, browser: "Firefox"},
		click{link: link, at: s.now(), times: 3, device: schema.Bot})
	b := s.signedIn(t)
	for show, want := range map[string][2]string{
		"":           {"Clicks", "Clicks per day"},
		"people":     {"People", "People per day"},
		"visitors":   {"Visitors", "Visitors per day"},
		"bots":       {"Bots", "Bots per day"},
		"imported":   {"Clicks", "Clicks per day"}, // there are none
		`"><script>`: {"Clicks", "Clicks per day"},
	} {
		for _, path := range []string{"/dashboard/report", "/dashboard/links/0/sale"} {
			page := b.get(path + "?show=" + show)
			page.want(t, http.StatusOK, "Clicks 15", "People 12", "Visitors 1 unique per day (UTC)", "Bots 3", want[1])
			wantHarmless(t, page)
			if current := shownFigure.FindAllStringSubmatch(page.body, -1); len(current) != 1 || current[0][1] != want[0] {
				t.Errorf("%s %q: %q is shown", path, show, current)
			}
			for _, kept := range []string{`name="show" value="` + show + `"`, `show=` + show + `">12 months</a>`,
				`show=` + show + `">Year before</a>`, `show=` + show + `&amp;part=report"`} {
				if known := regexp.MustCompile("^[a-z]+$").MatchString(show); strings.Contains(page.body, kept) != known {
					t.Errorf("%s %q: %s is there: %v", path, show, kept, !known)
				}
			}
		}
	}
	b.get("/dashboard/report?show=people")
	b.choose("browser", "Firefox").want(t, http.StatusOK, "People per day", "Browser: Firefox remove")
	b.get("/dashboard/report?show=visitors&browser=Firefox").want(t, http.StatusOK, "Clicks per day")
}

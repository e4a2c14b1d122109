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
			page.want(t, http.StatusOK, "Clicks 15", "People 12", "Visitors 1 ", "unique per day (UTC)", "Bots 3", want[1])
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

// The chart draws the time before as a line, and says which time that is, or that there is no data for it.
func TestTimeBefore(t *testing.T) {
	s := start(t)
	now := s.now().UTC()
	old := s.addLinkAt(t, "old", "https://example.org/", now.AddDate(-2, 0, 0))
	seen := s.addLinkAt(t, "seen", "https://example.org/", now.AddDate(-2, 0, 0))
	young := s.addLink(t, "young", "https://example.org/")
	s.count(t, click{link: old, at: now.AddDate(0, 0, -1), times: 10}, click{link: young, at: now, times: 3},
		click{link: old, at: now.AddDate(0, 0, -8), times: 20, visitor: 1},
		click{link: seen, at: now.AddDate(0, 0, -1), times: 4, visitor: 2},
		click{link: seen, at: now.AddDate(0, 0, -8), times: 9, visitor: 3},
		click{link: old, at: now.AddDate(0, 0, -20), times: 5, device: schema.Bot})
	b := s.signedIn(t)
	for name, c := range map[string]struct {
		path, says string
		row        string // of yesterday
		ghost      bool
	}{
		"clicks":        {"old?period=7d", "Clicks in the previous 7 days", "10 0 10 20", true},
		"people":        {"old?period=7d&show=people", "People in the previous 7 days", "10 0 10 20", true},
		"visitors":      {"seen?period=7d&show=visitors", "Visitors 1 1 before", "4 0 4 1 1", true},
		"no visitors":   {"old?period=7d&show=visitors", "Clicks in the previous 7 days", "10 0 10 20", true},
		"no such click": {"old?period=7d&show=bots", "No bots in the previous 7 days", "10 0 10", false},
		"no click":      {"old?period=30d", "No clicks in the previous 30 days", "10 0 10", false},
		"no link":       {"young?period=7d", "No data for the period before", "", false},
		"no account":    {"old?period=7d&compare=year", "No data for the year before", "10 0 10", false},
	} {
		page := b.get("/dashboard/links/0/" + c.path)
		page.want(t, http.StatusOK, c.says)
		wantHarmless(t, page)
		if c.row != "" {
			page.want(t, http.StatusOK, now.AddDate(0, 0, -1).Format("2 Jan 2006")+" "+c.row+" ")
		}
		for _, part := range []string{`class="chart-ghost"`, `class="key key-ghost"`, `>Before</th>`} {
			if strings.Contains(page.body, part) != c.ghost {
				t.Errorf("%s: %s is there: %v", name, part, !c.ghost)
			}
		}
	}
}

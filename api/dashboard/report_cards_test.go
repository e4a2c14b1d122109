package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema/testkit"
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

// A campaign has a source, a medium and a name, and a report has a list of each.
func TestReportOfCampaigns(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	for campaign, times := range map[string]int{"letter / email / spring": 6, "letter / email / autumn": 3,
		"ads / - / spring": 2, "ads": 1, "": 7, "Other": 1} {
		s.count(t, click{link: link, at: s.now(), times: times, campaign: campaign})
	}
	b := s.signedIn(t)
	b.get("/dashboard/report").want(t, http.StatusOK,
		"Campaign sources Name Share Clicks letter letter / email / spring 6 letter / email / autumn 3 45% 9 None 35% 7 "+
			"ads ads / - / spring 2 ads 1 15% 3 Other 5% 1 CSV",
		"Campaign mediums Name Share Clicks None None 7 ads / - / spring 2 ads 1 50% 10 email letter / email / spring 6 "+
			"letter / email / autumn 3 45% 9 Other 5% 1 CSV",
		"Campaign names Name Share Clicks None None 7 ads 1 40% 8 spring letter / email / spring 6 ads / - / spring 2 "+
			"40% 8 autumn 15% 3 Other 5% 1 CSV")
	b.choose("campaign", "letter / email / autumn").want(t, http.StatusOK, "Clicks 3",
		"Campaign: letter / email / autumn remove", "Campaign sources Name Share Clicks letter 100% 3 CSV")
	csv := b.get("/dashboard/report.csv?list=campaign_name").body
	testkit.Equal(t, "file", csv, "\ufeffcampaign_name,people\nNone,8\nspring,8\nautumn,3\nOther,1\n")

	for i := range 100 {
		s.count(t, click{link: link, at: s.now(), campaign: fmt.Sprintf("letter / email / %02d", i)})
	}
	const some = "Of the 100 campaigns with the most clicks"
	b.get("/dashboard/report").want(t, http.StatusOK, some, "All campaign names", "and 91 more")
	b.get("/dashboard/report?limit=1000").lacks(t, some, "91 more")
}

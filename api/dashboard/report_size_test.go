package dashboard_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// busyClicks has tens of millions of clicks, and the largest number of names and links that a report shows.
type busyClicks struct {
	storetest.FaultyClicks
	links []schema.Link

	countries []string // the codes of all
}

var busyNames = map[schema.Dimension][]string{
	schema.ByDevice: {"desktop", "mobile", "tablet", "other"},
	schema.ByBrowser: {"Chrome", "Safari", "Edge", "Firefox", "Opera", "Samsung Internet", "UC Browser", "Yandex Browser",
		"Internet Explorer", "Vivaldi"},
	schema.ByOS: {"Windows", "Android", "iOS", "macOS", "Linux", "ChromeOS", "iPadOS", "HarmonyOS", "FreeBSD",
		"Windows Phone"},
	schema.ByLanguage: {"en", "de", "fr", "es", "pt", "zh", "ja", "it", "nl", "pl"},
	schema.ByCountry:  {"US", "GB", "BA", "GS", "AE", "VC", "TT", "PG", "CF", "DO"},
	schema.ByCampaign: {"newsletter / email / november", "newsletter / email / october", "newsletter / email / sale",
		"newsletter / app / november", "newsletter / app / october", "newsletter / app / sale", "partner / email / sale",
		"partner / app / november", "partner / app / october", "partner / app / sale"},
	schema.ByRoute: {"", "android-germany", "ios-germany", "android-austria", "ios-austria", "new-design", "old-design",
		"tablets", "evening", "weekend"},
}

func (b busyClicks) Report(_ context.Context, q schema.ReportQuery) (schema.Report, error) {
	r := schema.NewReport(q)
	visitors := schema.Visitors{Total: 28_765_432, Previous: 27_654_321}
	for i := range r.Series {
		n := int64(70_000_000 / len(r.Series))
		r.Series[i] = schema.Period{People: n - n/90*int64(i%9), Bots: n/3 - n/50*int64(i%5)}
		visitors.Series = append(visitors.Series, n/2)
	}
	if q.CountsVisitors() {
		r.Visitors = &visitors
	}
	r.Previous = schema.Period{People: 61_987_654, Bots: 21_987_654}
	for i := range min(10, q.Limit) {
		n := 11_765_432 - 876_543*int64(i)
		for _, by := range schema.Dimensions() {
			name := fmt.Sprintf("newsletter-%d.shop.example.org", i)
			if names := busyNames[by]; names != nil {
				name = names[min(i, len(names)-1)]
			}
			if _, filtered := q.Filter[by]; i == 0 || !filtered && (by != schema.ByDevice || i < len(busyNames[by])) {
				r.Names[by] = append(r.Names[by], schema.NameCount{Name: cmp.Or(q.Filter[by], name), Total: n})
			}
		}
		if q.TopLinks {
			r.Links = append(r.Links, schema.LinkCount{LinkID: b.links[i].ID, Total: n})
		}
	}
	for i, code := range b.countries[:min(q.Limit, len(b.countries))] {
		if _, filtered := q.Filter[schema.ByCountry]; !filtered && i >= len(r.Names[schema.ByCountry]) {
			r.Names[schema.ByCountry] = append(r.Names[schema.ByCountry],
				schema.NameCount{Name: code, Total: 3_000_000 - 12_000*int64(i)})
		}
	}
	return r, nil
}

// A report has pictures, and a list of names for each dimension.
func TestReportIsSmall(t *testing.T) {
	const most = 60 << 10
	s := start(t)
	s.account = schema.Account{Email: "old@example.org", PasswordHash: passwordHash(),
		CreatedAt: s.now().UTC().AddDate(-30, 0, 0)} // so that each report is compared
	testkit.Must(t, s.links.CreateAccount(t.Context(), &s.account))
	busy := busyClicks{FaultyClicks: storetest.FaultyClicks{ClickStore: s.clicks, ReportStore: s.clicks}}
	for i := range 10 {
		link := schema.Link{AccountID: s.account.ID, Hash: fmt.Sprintf("usual-%02d", i), Active: true,
			CreatedAt: s.now().UTC().AddDate(-9, 0, 0),
			URL:       "https://www.example.org/articles/2026/a-common-address?utm_source=newsletter&utm_medium=email",
			Title:     fmt.Sprintf("Article %d of November, with a title of 50 characters", i)[:50],
			Tags:      []string{fmt.Sprintf("newsletter-%d", i), fmt.Sprintf("november-%d", i)}}
		testkit.Must(t, s.links.CreateLink(t.Context(), &link))
		busy.links = append(busy.links, link)
	}
	world, err := os.ReadFile("static/map.svg")
	testkit.Must(t, err)
	for _, id := range regexp.MustCompile(`id="([A-Z]{2})"`).FindAllSubmatch(world, -1) {
		busy.countries = append(busy.countries, string(id[1]))
	}
	s.base = run(t, s.links, busy, nil, s.log)
	b := s.browser(t)
	b.signIn(s.account.Email, password)
	day := func(before int) string { return s.now().UTC().AddDate(0, 0, -before).Format("2006-01-02") }
	for name, query := range map[string]string{
		"today by hour":    "?interval=hour&from=" + day(0),
		"yesterday":        "?interval=hour&from=" + day(1) + "&to=" + day(1),
		"4 days by hour":   "?interval=hour&from=" + day(3),
		"24 days by hour":  "?interval=hour&from=" + day(23),
		"27 days by hour":  "?interval=hour&from=" + day(26),
		"31 days by hour":  "?interval=hour&from=" + day(30),
		"7 days":           "?from=" + day(6),
		"30 days":          "?",
		"90 days":          "?from=" + day(89),
		"125 days":         "?from=" + day(124),
		"12 months":        "?from=" + day(365),
		"2 years":          "?from=" + day(730),
		"all of ten years": "?from=" + day(3659),
	} {
		for _, path := range []string{"/dashboard/report", "/dashboard/links/0/usual-00"} {
			for _, with := range []string{"&compare=year", "&totals=show&tag=newsletter-0&domain_id=0"} {
				page := b.get(path + query + with)
				page.want(t, http.StatusOK, "Clicks", "Show as a table", "Rules and variants", "Campaign names")
				if n := len(page.body); n >= most {
					t.Errorf("%s of %s%s: %d bytes, want less than %d", name, path, with, n, most)
				}
			}
		}
	}
}

package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"linkstream/api/rest/resttest"
	"linkstream/schema/enrich/enrichtest"
	"linkstream/schema/testkit"
)

// trusted lets a test say which address a visitor has.
const trusted = "LINKSTREAM_EDGE_TRUSTED_PROXIES=127.0.0.0/8"

// TestReport follows clicks from redirects to statistics, the list and reports.
func TestReport(t *testing.T) {
	t.Parallel()
	countries := filepath.Join(t.TempDir(), "countries.mmdb")
	enrichtest.WriteCountries(t, countries, map[string]enrichtest.Record{"192.0.2.0/24": enrichtest.In("AT")})
	s := startSystem(t, trusted, "LINKSTREAM_EDGE_GEOIP="+countries, "LINKSTREAM_INGEST_GEOIP="+countries)
	owner := s.owner()
	const host = "links.example.org"
	id := s.domain(t, s.email, host)
	owner.Link(t, object{"long_url": "https://example.com/", "custom_alias": "reported", "rules": []object{
		{"name": "austria", "if": object{"country": []string{"AT"}}, "url": "https://example.com/at"}}})
	owner.Link(t, object{"long_url": "https://example.com/custom", "custom_alias": "reported", "domain_id": id})
	owner.Alias(t, "none", "https://example.com/none")
	for range 3 {
		s.click(t, "reported", "User-Agent", desktop, "Accept-Language", "de-AT,de;q=0.9,en;q=0.8",
			"Referer", "https://news.example.org/today", "X-Forwarded-For", "192.0.2.7")
	}
	for range 2 {
		s.click(t, "reported", "User-Agent", phone, "Accept-Language", "en")
	}
	s.click(t, "reported", "User-Agent", "curl/8.5.0")
	s.click(t, "reported", "User-Agent", phone, "Accept-Language", "fr-FR", "Host", host)
	owner.WaitTotal(t, "reported", 6)
	owner.WaitTotal(t, fmt.Sprintf("reported?domain_id=%v", id), 1)

	t.Run("the list has as many clicks as the statistics", func(t *testing.T) {
		items, _ := owner.Page(t, "")
		for i, want := range []int64{0, 1, 6} {
			testkit.Equal(t, fmt.Sprint("clicks of ", items[i]["short_url"]), number(t, items[i], "clicks"), want)
		}
	})
	t.Run("statistics have devices, browsers and days, which sum to total_clicks", func(t *testing.T) {
		stats := owner.Stats(t, "reported")
		resttest.Statistics.Check(t, stats)
		testkit.Equal(t, "devices", fmt.Sprint(stats["devices"]), "map[bot:1 desktop:3 mobile:2]")
		testkit.Equal(t, "browsers", fmt.Sprint(stats["browsers"]), "map[Chrome:5 curl:1]")
		sum := int64(0)
		for _, day := range stats["clicks_by_day"].([]any) {
			resttest.DayCount.Check(t, day.(object))
			sum += number(t, day.(object), "total")
		}
		testkit.Equal(t, "clicks of all days", sum, 6)
	})
	t.Run("the report of a link has people and bots apart, and people's names", func(t *testing.T) {
		body := owner.Get(t, "/api/v1/links/reported/report?"+week()).Want(t, http.StatusOK).Body
		testkit.Equal(t, "people", number(t, body["totals"].(object), "people"), 5)
		testkit.Equal(t, "bots", number(t, body["totals"].(object), "bots"), 1)
		testkit.Equal(t, "days", len(body["series"].([]any)), 7)
		inWeek := int64(0)
		for _, hour := range body["week"].([]any) {
			inWeek += number(t, hour.(object), "people")
		}
		testkit.Equal(t, "people of the hours of a week", inWeek, 5)
		testkit.Equal(t, "devices", names(t, body, "devices"), map[string]int64{"desktop": 3, "mobile": 2})
		testkit.Equal(t, "countries", names(t, body, "countries"), map[string]int64{"AT": 3, "": 2})
		testkit.Equal(t, "routes", names(t, body, "routes"), map[string]int64{"austria": 3, "": 2})
		testkit.Equal(t, "languages", names(t, body, "languages"), map[string]int64{"de": 3, "en": 2})
		testkit.Equal(t, "referrers", names(t, body, "referrers"), map[string]int64{"news.example.org": 3, "": 2})
	})
	t.Run("the report of an account has all its links, by hour in a time zone", func(t *testing.T) {
		path := "/api/v1/report?language=de&interval=hour&tz=Asia/Kathmandu&" + week()
		body := owner.Get(t, path).Want(t, http.StatusOK).Body
		testkit.Equal(t, "hours", len(body["series"].([]any)), 7*24) // no clock is changed there
		testkit.Equal(t, "clicks", number(t, body["totals"].(object), "clicks"), 3)
		hours := body["week"].([]any)
		for _, point := range body["series"].([]any) { // each hour of the week once
			at, err := time.Parse(time.RFC3339, point.(object)["at"].(string))
			testkit.Must(t, err)
			hour := hours[(int(at.Weekday())+6)%7*24+at.Hour()].(object)
			testkit.Equal(t, fmt.Sprint("people at ", at), number(t, hour, "people"), number(t, point.(object), "people"))
		}
		links := owner.Get(t, "/api/v1/report?"+week()).Want(t, http.StatusOK).Body["links"].([]any)
		if len(links) != 2 || number(t, links[0].(object), "clicks") != 6 {
			t.Errorf("links %v", links)
		}
	})
	t.Run("a click is in the statistics and in the list within two seconds", func(t *testing.T) {
		owner.Alias(t, "fresh", "https://example.com/fresh")
		clicks := int64(0)
		testkit.Follows(t, 2*time.Second, func(int) func() error {
			s.click(t, "fresh")
			clicks++
			return func() error {
				owner.WaitTotal(t, "fresh", clicks)
				items, _ := owner.Page(t, "")
				return testkit.Mismatch("clicks in the list", number(t, items[0], "clicks"), clicks)
			}
		})
	})
}

// week returns a query of seven days that has the clicks of now, whatever the time is.
func week() string {
	first := time.Now().UTC().AddDate(0, 0, -5)
	return "from=" + first.Format(time.DateOnly) + "&to=" + first.AddDate(0, 0, 6).Format(time.DateOnly)
}

// names returns a breakdown of a report.
func names(t *testing.T, report object, breakdown string) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, item := range report[breakdown].([]any) {
		counts[item.(object)["name"].(string)] = number(t, item.(object), "clicks")
	}
	return counts
}

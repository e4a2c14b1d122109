package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

func TestReport(t *testing.T) { t.Parallel(); onBothKinds(t, testReport) }

// testReport counts clicks of two browsers, and of a program, from redirects to reports.
func testReport(t *testing.T, s *system) {
	owner := s.owner()
	owner.Alias(t, "reported", "https://example.com/")
	owner.Alias(t, "beside", "https://example.com/")
	for range 3 {
		s.click(t, "reported", "User-Agent", desktop, "Accept-Language", "de-AT,de;q=0.9,en;q=0.8", "Referer", "https://news.example.org/today")
	}
	for range 2 {
		s.click(t, "reported", "User-Agent", phone, "Accept-Language", "en")
	}
	s.click(t, "reported", "User-Agent", "curl/8.5.0")
	s.click(t, "beside", "User-Agent", phone, "Accept-Language", "fr-FR")
	owner.WaitTotal(t, "reported", 6)
	owner.WaitTotal(t, "beside", 1)
	// Seven days, so that the clicks are in the report whatever the time is.
	first := time.Now().UTC().AddDate(0, 0, -5)
	week := "from=" + first.Format(time.DateOnly) + "&to=" + first.AddDate(0, 0, 6).Format(time.DateOnly)

	t.Run("of a link has people and bots apart, and people's names", func(t *testing.T) {
		body := owner.Get(t, "/api/v1/links/reported/report?"+week).Want(t, http.StatusOK).Body
		testkit.Equal(t, "people", number(t, body["totals"].(object), "people"), 5)
		testkit.Equal(t, "bots", number(t, body["totals"].(object), "bots"), 1)
		testkit.Equal(t, "days", len(body["series"].([]any)), 7)
		testkit.Equal(t, "devices", reportNames(t, body, "devices"), map[string]int64{"desktop": 3, "mobile": 2})
		testkit.Equal(t, "languages", reportNames(t, body, "languages"), map[string]int64{"de": 3, "en": 2})
		testkit.Equal(t, "referrers", reportNames(t, body, "referrers"), map[string]int64{"news.example.org": 3, "": 2})
	})
	t.Run("of a link can be filtered, by hour, in any time zone", func(t *testing.T) {
		for _, zone := range []string{"UTC", "Asia/Kathmandu", "America/Los_Angeles"} {
			body := owner.Get(t, "/api/v1/links/reported/report?language=de&interval=hour&tz="+zone+"&"+week).Want(t, http.StatusOK).Body
			testkit.Equal(t, "hours", len(body["series"].([]any)), hoursOfWeek(t, first, zone))
			testkit.Equal(t, "devices", reportNames(t, body, "devices"), map[string]int64{"desktop": 3})
			testkit.Equal(t, "clicks", number(t, body["totals"].(object), "clicks"), 3)
			clicked := int64(0)
			for _, period := range body["series"].([]any) {
				clicked += number(t, period.(object), "people")
			}
			testkit.Equal(t, "clicks of all hours", clicked, 3)
		}
	})
	t.Run("of an account has all its links", func(t *testing.T) {
		body := owner.Get(t, "/api/v1/report?"+week).Want(t, http.StatusOK).Body
		testkit.Equal(t, "languages", reportNames(t, body, "languages"), map[string]int64{"de": 3, "en": 2, "fr": 1})
		links := body["links"].([]any)
		if len(links) != 2 || links[0].(object)["hash"] != "reported" || number(t, links[0].(object), "clicks") != 6 {
			t.Errorf("links %v", links)
		}
		body = owner.Get(t, "/api/v1/report?language=fr&tz=Europe/Berlin&"+week).Want(t, http.StatusOK).Body
		if links := body["links"].([]any); len(links) != 1 || links[0].(object)["hash"] != "beside" {
			t.Errorf("links with a filter %v", links)
		}
	})
}

// reportNames returns a breakdown of a report.
func reportNames(t *testing.T, report object, breakdown string) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, item := range report[breakdown].([]any) {
		counts[item.(object)["name"].(string)] = number(t, item.(object), "clicks")
	}
	return counts
}

// hoursOfWeek returns the length of the week that begins on the day of first in a zone, where a clock may be changed in it.
func hoursOfWeek(t *testing.T, first time.Time, zone string) int {
	t.Helper()
	location, err := time.LoadLocation(zone)
	testkit.Must(t, err)
	midnight := func(days int) time.Time {
		return time.Date(first.Year(), first.Month(), first.Day()+days, 0, 0, 0, 0, location)
	}
	return int(midnight(7).Sub(midnight(0)).Hours())
}

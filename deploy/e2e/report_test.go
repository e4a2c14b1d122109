package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

var (
	linkReport = shape{"success": yes, "hash": text, "from": text, "to": text, "tz": text, "interval": text, "counted_until": moment,
		"totals": structure, "previous": structure, "series": array, "devices": array, "browsers": array, "os": array, "languages": array,
		"referrers": array, "countries": array}
	reportTotals = shape{"clicks": integer, "people": integer, "bots": integer}
	reportPeriod = shape{"at": text, "people": integer, "bots": integer}
)

func TestReport(t *testing.T) { t.Parallel(); onBothKinds(t, testReport) }

// testReport counts clicks of two browsers, and of a program, from redirects to reports.
func testReport(t *testing.T, s *system) {
	owner := s.owner()
	owner.alias(t, "reported", "https://example.com/")
	owner.alias(t, "beside", "https://example.com/")
	for range 3 {
		s.click(t, "reported", "User-Agent", desktop, "Accept-Language", "de-AT,de;q=0.9,en;q=0.8", "Referer", "https://news.example.org/today")
	}
	for range 2 {
		s.click(t, "reported", "User-Agent", phone, "Accept-Language", "en")
	}
	s.click(t, "reported", "User-Agent", "curl/8.5.0")
	s.click(t, "beside", "User-Agent", phone, "Accept-Language", "fr-FR")
	owner.waitTotal(t, "reported", 6)
	owner.waitTotal(t, "beside", 1)
	// Seven days, so that the clicks are in the report whatever the time is.
	first := time.Now().UTC().AddDate(0, 0, -5)
	week := "from=" + first.Format(time.DateOnly) + "&to=" + first.AddDate(0, 0, 6).Format(time.DateOnly)
	names := func(t *testing.T, body object, dimension string) map[string]int64 {
		t.Helper()
		counts := map[string]int64{}
		for _, item := range body[dimension].([]any) {
			counts[item.(object)["name"].(string)] = number(t, item.(object), "clicks")
		}
		return counts
	}

	t.Run("of a link has people and bots apart, and people's names", func(t *testing.T) {
		body := owner.get(t, "/api/v1/links/reported/report?"+week).want(t, http.StatusOK).body
		linkReport.check(t, body)
		reportTotals.check(t, body["totals"].(object))
		reportPeriod.check(t, body["series"].([]any)[0].(object))
		testkit.Equal(t, "people", number(t, body["totals"].(object), "people"), 5)
		testkit.Equal(t, "bots", number(t, body["totals"].(object), "bots"), 1)
		testkit.Equal(t, "days", len(body["series"].([]any)), 7)
		testkit.Equal(t, "devices", names(t, body, "devices"), map[string]int64{"desktop": 3, "mobile": 2})
		testkit.Equal(t, "languages", names(t, body, "languages"), map[string]int64{"de": 3, "en": 2})
		testkit.Equal(t, "referrers", names(t, body, "referrers"), map[string]int64{"news.example.org": 3, "": 2})
	})
	t.Run("of a link can be filtered, by hour, in any time zone", func(t *testing.T) {
		for _, zone := range []string{"UTC", "Asia/Kathmandu", "America/Los_Angeles"} {
			body := owner.get(t, "/api/v1/links/reported/report?language=de&interval=hour&tz="+zone+"&"+week).want(t, http.StatusOK).body
			testkit.Equal(t, "hours", len(body["series"].([]any)), hoursOfWeek(t, first, zone))
			testkit.Equal(t, "devices", names(t, body, "devices"), map[string]int64{"desktop": 3})
			testkit.Equal(t, "clicks", number(t, body["totals"].(object), "clicks"), 3)
			clicked := int64(0)
			for _, period := range body["series"].([]any) {
				clicked += number(t, period.(object), "people")
			}
			testkit.Equal(t, "clicks of all hours", clicked, 3)
		}
	})
	t.Run("of an account has all its links", func(t *testing.T) {
		body := owner.get(t, "/api/v1/report?"+week).want(t, http.StatusOK).body
		testkit.Equal(t, "languages", names(t, body, "languages"), map[string]int64{"de": 3, "en": 2, "fr": 1})
		links := body["links"].([]any)
		if len(links) != 2 || links[0].(object)["hash"] != "reported" || number(t, links[0].(object), "clicks") != 6 {
			t.Errorf("links %v", links)
		}
		body = owner.get(t, "/api/v1/report?language=fr&tz=Europe/Berlin&"+week).want(t, http.StatusOK).body
		if links := body["links"].([]any); len(links) != 1 || links[0].(object)["hash"] != "beside" {
			t.Errorf("links with a filter %v", links)
		}
	})
	t.Run("names all invalid fields", func(t *testing.T) {
		a := owner.get(t, "/api/v1/report?tz=x&from=y&limit=0").want(t, http.StatusUnprocessableEntity)
		for _, field := range []string{"tz", "from", "limit"} {
			if a.body["errors"].(object)[field] == nil {
				t.Errorf("%s is not named: %v", field, a.body)
			}
		}
	})
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

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"linkstream/api/rest/resttest"
)

func TestLinksAndStatsHaveTheSameClicks(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testLinksAndStatsHaveTheSameClicks)
}

func testLinksAndStatsHaveTheSameClicks(t *testing.T, s *system) {
	owner := s.owner()
	id := s.domain(t, s.email, "links.example.org")
	owner.Alias(t, "same", "https://example.com/default")
	owner.Link(t, object{"long_url": "https://example.com/custom", "custom_alias": "same", "domain_id": id})
	owner.Alias(t, "none", "https://example.com/none")
	for range 3 {
		s.click(t, "same")
	}
	for range 5 {
		s.click(t, "same", "Host", "links.example.org")
	}
	owner.WaitTotal(t, "same", 3)
	owner.WaitTotal(t, fmt.Sprintf("same?domain_id=%v", id), 5)

	items, _ := owner.Page(t, "")
	for i, want := range []int64{0, 5, 3} {
		if got := number(t, items[i], "clicks"); got != want {
			t.Errorf("%v has %d clicks in the list, want %d as in its stats", items[i]["short_url"], got, want)
		}
	}
}

// agents are User-Agent headers with the device and the browser that they count as.
var agents = []struct{ device, browser, header string }{
	{"desktop", "Chrome", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"},
	{"desktop", "Firefox", "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"},
	{"desktop", "Safari", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15"},
	{"desktop", "Edge", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.2903.51"},
	{"desktop", "Opera", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 OPR/115.0.0.0"},
	{"mobile", "Safari", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"},
	{"mobile", "Chrome", "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36"},
	{"tablet", "Safari", "Mozilla/5.0 (iPad; CPU OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 Mobile/15E148 Safari/604.1"},
	{"bot", "", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
	{"bot", "", "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"},
	{"bot", "", ""},
	{"bot", "okhttp", "okhttp/4.12.0"},
	{"other", "", "Mozilla/5.0 (PlayStation 5 3.20) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0"},
}

func TestStatsOfDevicesAndBrowsers(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testStatsOfDevicesAndBrowsers)
}

func testStatsOfDevicesAndBrowsers(t *testing.T, s *system) {
	owner := s.owner()
	owner.Alias(t, "agents", "https://example.com/")
	before := time.Now().UTC().Format(time.DateOnly)
	devices, browsers := map[string]int64{}, map[string]int64{}
	var total int64
	for i, agent := range agents {
		for range i + 1 { // each has a different number of clicks, so that counts cannot be confused
			s.click(t, "agents", "User-Agent", agent.header)
		}
		devices[agent.device] += int64(i + 1)
		browsers[agent.browser] += int64(i + 1)
		total += int64(i + 1)
	}
	owner.WaitTotal(t, "agents", total)
	stats := owner.Stats(t, "agents")
	after := time.Now().UTC().Format(time.DateOnly)

	resttest.Statistics.Check(t, stats)
	t.Run("devices has desktop, mobile, tablet, bot and other, and sums to total_clicks", func(t *testing.T) {
		got := stats["devices"].(object)
		for device, want := range devices {
			if n := number(t, got, device); n != want {
				t.Errorf("%d clicks by %s, want %d", n, device, want)
			}
		}
		if len(got) != len(devices) || sum(t, got) != total {
			t.Errorf("devices: %v, want %v", got, devices)
		}
	})
	t.Run("browsers has the clicks of each browser by its name", func(t *testing.T) {
		got := stats["browsers"].(object)
		for browser, want := range browsers {
			if browser != "" && number(t, got, browser) != want {
				t.Errorf("%v clicks by %s, want %d", got[browser], browser, want)
			}
		}
		if sum(t, got) > total {
			t.Errorf("browsers sum to more than %d: %v", total, got)
		}
	})
	t.Run("clicks_by_day sums to total_clicks", func(t *testing.T) {
		var got int64
		for _, day := range stats["clicks_by_day"].([]any) {
			resttest.DayCount.Check(t, day.(object))
			if date := day.(object)["date"]; date != before && date != after {
				t.Errorf("date is %v, want %s", date, after)
			}
			got += number(t, day.(object), "total")
		}
		if got != total {
			t.Errorf("the days sum to %d, want %d", got, total)
		}
	})
}

func TestStatsOfTopBrowsers(t *testing.T) { t.Parallel(); onBothKinds(t, testStatsOfTopBrowsers) }

func testStatsOfTopBrowsers(t *testing.T, s *system) {
	owner := s.owner()
	owner.Alias(t, "browsers", "https://example.com/")
	total := int64(0)
	for i, product := range products {
		for range len(products) - i { // the first ones click most
			s.click(t, "browsers", "User-Agent", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) "+product)
			total++
		}
	}
	owner.WaitTotal(t, "browsers", total)
	got := owner.Stats(t, "browsers")["browsers"].(object)
	if len(got) != 10 {
		t.Errorf("%d browsers, want the 10 most frequent: %v", len(got), got)
	}
	// Thirteen browsers have 13, 12, 11, … 1 clicks. The three with the fewest are left out.
	if want := total - 3 - 2 - 1; sum(t, got) != want {
		t.Errorf("browsers sum to %d, want the %d of the 10 most frequent: %v", sum(t, got), want, got)
	}
}

// products are the ends of the User-Agent headers of thirteen browsers and crawlers.
var products = []string{
	"AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
	"Gecko/20100101 Firefox/132.0",
	"AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15",
	"AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.2903.51",
	"AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 OPR/115.0.0.0",
	"AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Vivaldi/7.0.3495.11",
	"AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/26.0 Chrome/122.0.0.0 Safari/537.36",
	"AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 YaBrowser/24.10.0.0 Safari/537.36",
	"AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
	"AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
	"AppleWebKit/537.36 (KHTML, like Gecko; compatible; YandexBot/3.0; +http://yandex.com/bots)",
	"(compatible; Twitterbot/1.0)",
	"(compatible; facebookexternalhit/1.1; +http://www.facebook.com/externalhit_uatext.php)",
}

func sum(t *testing.T, counts object) (total int64) {
	t.Helper()
	for name := range counts {
		total += number(t, counts, name)
	}
	return total
}

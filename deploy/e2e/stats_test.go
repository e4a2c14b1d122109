package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestSection4Stats(t *testing.T) { t.Parallel(); onBothKinds(t, testSection4Stats) }

func testSection4Stats(t *testing.T, s *system) {
	owner := s.owner()
	other, otherEmail := s.another(t, "other")
	made := owner.alias(t, "mine", "https://example.com/mine")

	t.Run("success is 200 with the fields of the table", func(t *testing.T) {
		body := owner.get(t, "/api/v1/stats/mine").want(t, http.StatusOK).body
		linkStats.check(t, body)
		for _, name := range []string{"hash", "short_url", "original_url"} {
			if body[name] != made[name] {
				t.Errorf("%s is %v, at creation it was %v", name, body[name], made[name])
			}
		}
	})
	t.Run("the hash may be a short code", func(t *testing.T) {
		hash := owner.link(t, object{"long_url": "https://example.com/"})["hash"].(string)
		if body := owner.get(t, "/api/v1/stats/"+hash).want(t, http.StatusOK).body; body["hash"] != hash {
			t.Errorf("hash is %v, want %q", body["hash"], hash)
		}
	})
	for _, hash := range []string{"unknown", "x", "MINE", strings.Repeat("y", 300), "%00", "a%2Fb", "%C3%A4bc"} {
		t.Run("rule 1: a hash that does not exist is 404: "+hash[:min(len(hash), 9)], func(t *testing.T) {
			owner.get(t, "/api/v1/stats/"+hash).wantError(t, http.StatusNotFound)
		})
	}
	t.Run("rule 1: another's link is the same 404 as one that does not exist", func(t *testing.T) {
		foreign := other.get(t, "/api/v1/stats/mine").wantError(t, http.StatusNotFound)
		unknown := other.get(t, "/api/v1/stats/none").wantError(t, http.StatusNotFound)
		if foreign.raw != strings.ReplaceAll(unknown.raw, "none", "mine") {
			t.Errorf("%v\ndiffers from %v", foreign, unknown)
		}
	})
	t.Run("another's link on the default domain does not hide the caller's own link", func(t *testing.T) {
		id := s.domain(t, otherEmail, "others.example.org")
		other.link(t, object{"long_url": "https://example.com/theirs", "custom_alias": "mine", "domain_id": id})
		if body := other.get(t, "/api/v1/stats/mine").want(t, 200).body; body["original_url"] != "https://example.com/theirs" {
			t.Errorf("want the caller's own link: %v", body)
		}
		if body := owner.get(t, "/api/v1/stats/mine").want(t, 200).body; body["original_url"] != "https://example.com/mine" {
			t.Errorf("want the caller's own link: %v", body)
		}
	})
}

// TestStatsOfDomains tests which link GET /stats/{hash} selects if several have the hash.
func TestStatsOfDomains(t *testing.T) { t.Parallel(); onBothKinds(t, testStatsOfDomains) }

func testStatsOfDomains(t *testing.T, s *system) {
	owner := s.owner()
	first, second := s.domain(t, s.email, "first.example.org"), s.domain(t, s.email, "second.example.org")
	// The newer domain has the older link: the link's age decides.
	owner.link(t, object{"long_url": "https://example.com/second", "custom_alias": "many", "domain_id": second})
	owner.link(t, object{"long_url": "https://example.com/first", "custom_alias": "many", "domain_id": first})
	target := func(t *testing.T, path string) any {
		t.Helper()
		return owner.get(t, path).want(t, http.StatusOK).body["original_url"]
	}

	t.Run("the caller's oldest link is selected if none is on the default domain", func(t *testing.T) {
		if got := target(t, "/api/v1/stats/many"); got != "https://example.com/second" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("the link on the default domain is selected first", func(t *testing.T) {
		owner.alias(t, "many", "https://example.com/default")
		if got := target(t, "/api/v1/stats/many"); got != "https://example.com/default" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("domain_id selects the domain", func(t *testing.T) {
		for id, want := range map[any]string{first: "first", second: "second"} {
			if got := target(t, fmt.Sprintf("/api/v1/stats/many?domain_id=%v", id)); got != "https://example.com/"+want {
				t.Errorf("got %v, want %s", got, want)
			}
		}
		owner.alias(t, "single", "https://example.com/")
		owner.get(t, fmt.Sprintf("/api/v1/stats/single?domain_id=%v", first)).wantError(t, http.StatusNotFound)
	})
	t.Run("clicks count for the link of their domain only", func(t *testing.T) {
		s.click(t, "many", "Host", "first.example.org")
		s.click(t, "many", "Host", "first.example.org")
		s.click(t, "many", "Host", "second.example.org")
		owner.waitTotal(t, fmt.Sprintf("many?domain_id=%v", first), 2)
		owner.waitTotal(t, fmt.Sprintf("many?domain_id=%v", second), 1)
		owner.waitTotal(t, "many", 0)
	})
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
	owner.alias(t, "agents", "https://example.com/")
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
	owner.waitTotal(t, "agents", total)
	stats := owner.stats(t, "agents")

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
	owner.alias(t, "browsers", "https://example.com/")
	total := int64(0)
	for i, product := range products {
		for range len(products) - i { // the first ones click most
			s.click(t, "browsers", "User-Agent", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) "+product)
			total++
		}
	}
	owner.waitTotal(t, "browsers", total)
	got := owner.stats(t, "browsers")["browsers"].(object)
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

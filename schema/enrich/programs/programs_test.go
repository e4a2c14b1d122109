package programs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"linkstream/schema/enrich/programs"
	"linkstream/schema/testkit"
)

const webkit = "AppleWebKit/537.36 (KHTML, like Gecko) "

// people are agents of browsers and apps that show pages. The tests of package enrich have more.
var people = []string{
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + webkit + "Chrome/131.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Linux; Android 10; CUBOT X30) " + webkit + "Chrome/110.0.0.0 Mobile Safari/537.36",
	"Mozilla/5.0 (Linux; U; Android 13; en-us; Redmi Note 12 Build/TKQ1) " + webkit +
		"Version/4.0 Chrome/112.0.5615.136 Mobile Safari/537.36 XiaoMi/MiuiBrowser/14.4.0",
	"Mozilla/5.0 (SMART-TV; LINUX; Tizen 6.5) AppleWebKit/537.36 (KHTML, like Gecko) 85.0.4183.93/6.5 TV Safari/537.36",
	"Mozilla/5.0 (Web0S; Linux/SmartTV) " + webkit + "Chrome/94.0.4606.128 Safari/537.36 WebAppManager",
	"Mozilla/5.0 (PlayStation 5 3.20) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0 Safari/605.1.15",
	"Mozilla/5.0 (PlayStation Vita 3.74) AppleWebKit/537.73 (KHTML, like Gecko) Silk/3.2 libhttp/3.74 (PSP2)",
	"Mozilla/5.0 (Nintendo Switch; WifiWebAuthApplet) AppleWebKit/606.4 (KHTML, like Gecko) NF/6.0.1.15.4 " +
		"NintendoBrowser/5.1.0.20393",
	"Mozilla/5.0 (X11; Linux x86_64) " + webkit + "Chrome/126.0.0.0 Electron/31.3.1 Safari/537.36",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) " + webkit +
		"Slack/4.39.95 Chrome/126.0.6478.183 Electron/31.2.1 Safari/537.36",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/22B83 " +
		"Snapchat/13.14.0.37 (like Safari/8620.1.16, panda)",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 " +
		"[Pinterest/iOS]",
	"Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/AP2A; wv) " + webkit +
		"Version/4.0 Chrome/131.0.0.0 Mobile Safari/537.36 Line/14.19.1/IAB",
	"Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
	"Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18",
	"Lynx/2.9.0dev.12 SSL-MM/1.4.1 GNUTLS/3.7.8",
	"w3m/0.5.3+git20230121",
	"ELinks/0.13.2 (textmode; Linux 6.1.0 x86_64; 80x24-2)",
	"BlackBerry8520/5.0.0.681 Profile/MIDP-2.0 Configuration/CLDC-1.1 VendorID/600",
	"UCWEB/2.0 (MIDP-2.0; U; Adr 9; en-US; SM-J260G) U2/1.0.0 UCMini/12.12.9.1226 (Speed; NoWe) Mobile",
}

// others are agents of programs that are not in the list of crawlers.
var others = []string{
	"", "-", "Mozilla/5.0", "Mozilla/4.0 ", "\x00\xff(((;;;///", "([([", "x", "test", "5.0 (Windows)",
	"curl/8.5.0", "Wget/1.21.4", "Wget/1.21 (linux-gnu)", "python-requests/2.32.3", "Python/3.12 aiohttp/3.9.5",
	"Go-http-client/1.1", "Go-http-client/2.0",
	"okhttp/4.12.0", "okhttp/3.12.1 (Linux; Android 9)", "axios/1.7.2",
	"node-fetch/1.0 (+https://github.com/bitinn/node-fetch)", "undici", "got (https://github.com/sindresorhus/got)",
	"Apache-HttpClient/4.5.13 (Java/11.0.16)", "Java/17.0.9", "Jakarta Commons-HttpClient/3.1", "libwww-perl/6.72",
	"PHP/8.2.4", "GuzzleHttp/7", "Ruby", "Faraday v2.9.0", "reqwest/0.12",
	"Dalvik/2.1.0 (Linux; U; Android 13; SM-S901B Build/TP1A.220624.014)", "Messages/1 CFNetwork/1490.0.4 Darwin/23.2.0",
	"PostmanRuntime/7.39.0", "insomnia/9.3.2", "HTTPie/3.2.2",
	"Mozilla/5.0 (Windows NT 6.1; WOW64) " + webkit + "Chrome/41.0.2228.0 Safari/537.21 StatusCake",
	"Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 5.1; Trident/4.0; Nessus)",
	"Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
	"Mozilla/5.0 (Linux; Android 11; moto g power (2022)) " + webkit +
		"Chrome/119.0.0.0 Mobile Safari/537.36 Chrome-Lighthouse",
	"Mozilla/5.0 (X11; Linux x86_64) " + webkit +
		"Chrome/61.0.3163.100 Safari/537.36 PingdomPageSpeed/1.0 (pingbot/2.0; +http://www.pingdom.com/)",
	"Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)", "Site24x7", "Blackbox-Exporter/0.25.0",
	"Mozilla/5.0 (X11; Linux x86_64) " + webkit + "HeadlessChrome/131.0.0.0 Safari/537.36",
	"Mozilla/5.00 (Nikto/2.5.0) (Evasions:None) (Test:Port Check)", "sqlmap/1.8 (https://sqlmap.org)", "masscan/1.3",
	"WhatsApp/2.24.23.78 A", "Twitterbot/1.0", "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
}

func TestMatch(t *testing.T) {
	for _, agent := range people {
		if programs.Match(agent) {
			t.Errorf("an agent of people is taken for a program: %q", agent)
		}
	}
	for _, agent := range append(lines(t, "testdata/crawlers.txt"), others...) {
		if !programs.Match(agent) {
			t.Errorf("an agent of a program is taken for people: %q", agent)
		}
	}
}

// TestPatterns compares the search for all patterns at once with searches for one after the other.
func TestPatterns(t *testing.T) {
	var all []*regexp.Regexp
	for _, pattern := range lines(t, "patterns.txt") {
		all = append(all, regexp.MustCompile(pattern))
	}
	if len(all) < 1000 {
		t.Fatalf("%d patterns", len(all))
	}
	matches := func(agent string) bool {
		for _, re := range all {
			if re.MatchString(agent) {
				return true
			}
		}
		return false
	}
	for _, agent := range append(people, others...) {
		testkit.Equal(t, "match of "+agent, programs.Known(agent), matches(agent))
	}
	for _, agent := range lines(t, "testdata/crawlers.txt") {
		if !programs.Known(agent) {
			t.Errorf("no pattern finds %q: %v one after the other", agent, matches(agent))
		}
	}
	if n := programs.Unfiltered(); n > 0 {
		t.Errorf("%d patterns are tried for every agent", n)
	}
}

func lines(t testing.TB, name string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	testkit.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

func BenchmarkMatch(b *testing.B) {
	for name, agents := range map[string][]string{"people": people, "crawlers": lines(b, "testdata/crawlers.txt")} {
		b.Run(name, func(b *testing.B) {
			programs.Match(agents[0])
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				programs.Match(agents[i%len(agents)])
			}
		})
	}
}

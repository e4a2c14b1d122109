package programs_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"linkstream/schema/enrich/programs"
	"linkstream/schema/testkit"
)

// agents returns public agents of people and of programs.
func agents(t testing.TB) (people, others []string) {
	t.Helper()
	for _, line := range lines(t, "../testdata/agents.tsv") {
		agent, rest, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(rest, "person\t") {
			people = append(people, agent)
		} else {
			others = append(others, agent)
		}
	}
	return people, others
}

// The tests of package enrich judge public agents of people.
func TestMatchCrawlers(t *testing.T) {
	for _, agent := range lines(t, "testdata/crawlers.txt") {
		if !programs.Match(agent) {
			t.Errorf("an agent of a program is taken for people: %q", agent)
		}
	}
}

// A word that names programs counts only where a program names itself, wherever a device is described.
func TestWordsInDevices(t *testing.T) {
	const webkit = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36"
	for _, word := range []string{"bot", "Bot", "Bots", "Robot", "Crawler", "Spider", "Preview", "Monitor", "Scanner",
		"Ruby", "Python", "Perl", "Headless", "Validator", "Uptime", "Lighthouse", "Googlebot", "Sogou", "HTTP"} {
		for _, form := range []string{
			"Mozilla/5.0 (Linux; Android 9; %s X1) " + webkit,
			"Mozilla/5.0 (Linux; Android 9; M %s 551 Build/O11019; wv) " + webkit,
			"Mozilla/5.0 (Linux; U; Android 13; de-de; %[1]s_%[1]s Build/%[1]s) " + webkit,
			"Mozilla/5.0 (Linux; Android 11; moto %s (2022)) " + webkit,
			"Mozilla/5.0 (Android 14; Mobile; %s; rv:132.0) Gecko/132.0 Firefox/132.0",
			"Mozilla/5.0 (Mobile; %s_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5",
			"Instagram 308.0.0.36.109 Android (33/13; 440dpi; 1080x2180; %[1]s/%[1]s; %[1]s; %[1]s; mt6877; de_DE; 5)",
			"com.zhiliaoapp.musically/2022405030 (Linux; U; Android 12; en_US; %[1]s; Build/%[1]s; Cronet/TTNetVersion:1)",
			"[FBAN/FB4A;FBAV/567.1.0.52.74;FBCR/%[1]s;FBMF/%[1]s;FBBD/%[1]s;FBDV/%[1]s;FBSV/16;FBOP/1]",
			"Mozilla/5.0 (Linux; Android 13; K; wv) " + webkit + " [FB_IAB/FB4A;FBDV/%s;]",
			"Mozilla/5.0 (Linux; Android 13; K; wv) " + webkit + " Telegram-Android/11.4.2 (Xiaomi %s; Android 13; SDK 33)",
			"Mozilla/5.0 (Linux; Android 13; K; wv) " + webkit + " Snapchat/12.6 (%s; Android 13#A1#33; gzip; )",
			"Mozilla/5.0 (Linux; Android 13; K; wv) " + webkit + " Weibo (Xiaomi-%s__weibo__13.1.2__android__android13)",
			"UCWEB/2.0 (MIDP-2.0; U; Adr 9; en-US; %s) U2/1.0.0 UCBrowser/10.7.9.856 Mobile",
		} {
			if agent := fmt.Sprintf(form, word); programs.Match(agent) {
				t.Errorf("a device is taken for a program: %q", agent)
			}
		}
	}
	for _, form := range []string{
		"Mozilla/5.0 (Linux; Android 9; K; Foobot/1.0) " + webkit,
		"Mozilla/5.0 (Linux; Android 9; K) " + webkit + " Foobot/1.0",
		"Mozilla/5.0 (Linux; Android 9; K) " + webkit + " (compatible; Foobot)",
		"Mozilla/5.0 (Linux; Android 9; K; +https://foo.example/) " + webkit,
	} {
		if !programs.Match(form) {
			t.Errorf("a program is taken for people: %q", form)
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
	people, others := agents(t)
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
	people, _ := agents(b)
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

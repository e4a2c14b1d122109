package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/schema/enrich/enrichtest"
	"linkstream/schema/testkit"
)

// TestExtension has links whose rules, variants and cards decide at each visit.
func TestExtension(t *testing.T) {
	t.Parallel()
	countries := filepath.Join(t.TempDir(), "countries.mmdb")
	enrichtest.WriteCountries(t, countries, map[string]enrichtest.Record{"192.0.2.0/24": enrichtest.In("AT")})
	const proxies = "LINKSTREAM_EDGE_TRUSTED_PROXIES=127.0.0.0/8"
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		testExtension(t, startSystem(t, proxies, longCaches, "LINKSTREAM_INGEST_GEOIP="+countries)) // is that of the edge, too
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		s := newServices(t, sharedEngines(t), proxies, longCaches, "LINKSTREAM_EDGE_GEOIP="+countries)
		s.start(t)
		testExtension(t, s)
	})
}

// unfurlers are agents of programs that draw previews, as they send them.
var unfurlers = []string{
	"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "Twitterbot/1.0", "WhatsApp/2.23.20.0",
	"LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)", "TelegramBot (like TwitterBot)",
	"Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
	"Mastodon/4.3.1 (http.rb/5.2.0; +https://mastodon.example/) Bot", "Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)",
	"Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5", "Mozilla/5.0 (compatible; redditbot/1.0; +http://www.reddit.com/feedback)",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
	"Pinterest/0.2 (+https://www.pinterest.com/bot.html)", "Viber/13.3.0 CFNetwork/1121.2.2 Darwin/19.3.0", "Synapse (bot; +https://github.com/matrix-org/synapse)",
}

func testExtension(t *testing.T, s *system) {
	const (
		phone   = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
		desktop = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
		base    = "https://example.com/"
	)
	owner := s.owner()
	hash := owner.Shorten(t, object{"long_url": base, "forward_query": true, "rules": []object{
		{"name": "ended", "if": object{"until": "2020-01-01T00:00:00Z"}, "url": base + "ended"},
		{"name": "phones", "if": object{"device": []string{"mobile"}, "language": []string{"de"}}, "url": base + "phones"},
		{"name": "firefox", "if": object{"browser": []string{"Firefox"}, "os": []string{"Linux"}, "query": object{"ref": "*"}}, "url": base + "firefox"},
		{"name": "austria", "if": object{"country": []string{"AT"}, "from": "2020-01-01T00:00:00Z"}, "url": base + "austria"},
	}, "card": object{"title": "A card", "image": "https://example.com/i.png"}}).Want(t, http.StatusCreated).Body["hash"].(string)
	clicks := int64(0)
	want := func(t *testing.T, agent, language, address, query, location string) {
		t.Helper()
		visitor := []string{"User-Agent", agent, "Accept-Language", language, "X-Forwarded-For", address}
		for _, a := range []answer{s.visit(t, http.MethodHead, "/"+hash+query, visitor...),
			s.visit(t, http.MethodGet, "/"+hash+query, append(visitor, "Sec-Purpose", "prefetch")...), s.click(t, hash+query, visitor...)} {
			testkit.Equal(t, "Location", a.Header.Get("Location"), location+query)
		}
		clicks++ // the last one
	}
	t.Run("the first rule decides whose conditions hold", func(t *testing.T) {
		for range 2 { // looked up, and from memory
			want(t, phone, "de-AT,en", "192.0.2.7", "", base+"phones")
			want(t, phone, "en,de", "192.0.2.7", "", base+"austria")
			want(t, phone, "en,de", "198.51.100.1", "", base)
			want(t, desktop, "de", "192.0.2.7", "?ref=x", base+"firefox")
			want(t, desktop, "de", "192.0.2.7", "", base+"austria")
			want(t, desktop, "de", "198.51.100.1", "?other=x", base)
		}
	})
	t.Run("reports have the routes, and filter by them", func(t *testing.T) {
		owner.WaitTotal(t, hash, clicks)
		days := "?from=" + time.Now().UTC().AddDate(0, 0, -2).Format(time.DateOnly) + "&to=" + time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly)
		for _, path := range []string{"/api/v1/links/" + hash + "/report", "/api/v1/report"} {
			report := owner.Get(t, path+days).Want(t, http.StatusOK).Body
			testkit.Equal(t, "routes", reportNames(t, report, "routes"), map[string]int64{"phones": 2, "austria": 4, "firefox": 2, "": 4})
			report = owner.Get(t, path+days+"&route=austria").Want(t, http.StatusOK).Body
			testkit.Equal(t, "devices of a route", reportNames(t, report, "devices"), map[string]int64{"mobile": 2, "desktop": 2})
			report = owner.Get(t, path+days+"&route=").Want(t, http.StatusOK).Body
			testkit.Equal(t, "people on the long URL", number(t, report["totals"].(object), "people"), int64(4))
		}
		owner.Get(t, "/api/v1/report?route=Austria").Want(t, http.StatusUnprocessableEntity)
	})
	t.Run("reports have the campaigns of targets and forwarded queries, and filter by them", func(t *testing.T) {
		hash := owner.Shorten(t, object{"long_url": base + "?utm_source=news%20letter&a=b#utm_source=c", "forward_query": true,
			"rules": []object{{"name": "phones", "if": object{"device": []string{"mobile"}}, "url": base + "?utm_medium=app"}}}).
			Want(t, http.StatusCreated).Body["hash"].(string)
		for range 2 {
			s.click(t, hash, "User-Agent", desktop)
			s.click(t, hash+"?utm_campaign=spring&utm_source=other", "User-Agent", desktop)
			s.click(t, hash, "User-Agent", phone)
		}
		owner.WaitTotal(t, hash, 6)
		for _, path := range []string{"/api/v1/links/" + hash + "/report", "/api/v1/report"} {
			got := reportNames(t, owner.Get(t, path).Want(t, http.StatusOK).Body, "campaigns")
			delete(got, "") // clicks on other links
			testkit.Equal(t, "campaigns", got, map[string]int64{"news letter": 2, "news letter / - / spring": 2, "- / app": 2})
			report := owner.Get(t, path+"?campaign=-+/+app").Want(t, http.StatusOK).Body
			testkit.Equal(t, "devices of a campaign", reportNames(t, report, "devices"), map[string]int64{"mobile": 2})
		}
	})
	t.Run("previews get the card, counted as the click of a bot", func(t *testing.T) {
		for _, agent := range unfurlers {
			clicks++
			a := s.visit(t, http.MethodGet, "/"+hash, "User-Agent", agent)
			if a.Status != http.StatusOK || !strings.Contains(a.Raw, `<meta property="og:title" content="A card">`) {
				t.Error(agent, a)
			}
		}
		owner.WaitTotal(t, hash, clicks)
		devices := owner.Stats(t, hash)["devices"].(object)
		testkit.Equal(t, "clicks of bots", number(t, devices, "bot"), int64(len(unfurlers)))
	})
	t.Run("a PATCH takes effect within a second", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(try int) func() error {
			to := fmt.Sprint(base, "try", try)
			owner.Call(t, http.MethodPatch, "/api/v1/links/"+hash, fmt.Sprintf(`{"rules":[{"name":"all","if":{"query":{"a":"b"}},"url":%q}]}`, to)).Want(t, http.StatusOK)
			return func() error {
				if got := s.visit(t, http.MethodHead, "/"+hash+"?a=b").Header.Get("Location"); got != to+"?a=b" {
					return fmt.Errorf("Location is %q, want %q", got, to)
				}
				return nil
			}
		})
	})
	t.Run("a visitor has the same variant after kill -9", func(t *testing.T) {
		owner.Shorten(t, object{"long_url": base, "custom_alias": "varied", "variants": []object{
			{"name": "a", "url": base + "a", "weight": 40}, {"name": "b", "url": base + "b", "weight": 60}}}).Want(t, http.StatusCreated)
		visitors := func() (variants string) {
			for i := range 60 {
				a := s.click(t, "varied", "User-Agent", desktop, "X-Forwarded-For", fmt.Sprint("198.51.100.", i))
				variants += strings.TrimPrefix(a.Header.Get("Location"), base)
			}
			return variants
		}
		before := visitors()
		if n := strings.Count(before, "a"); n < 5 || n > 45 || n+strings.Count(before, "b") != 60 {
			t.Errorf("variants %q", before)
		}
		edge := s.programs[len(s.programs)-1]
		edge.kill(t)
		edge.start(t)
		testkit.Equal(t, "variants after a restart", visitors(), before)
		owner.WaitTotal(t, "varied", 120)
		report := owner.Get(t, "/api/v1/links/varied/report").Want(t, http.StatusOK).Body
		n := int64(2 * strings.Count(before, "a"))
		testkit.Equal(t, "routes", reportNames(t, report, "routes"), map[string]int64{"a": n, "b": 120 - n})
	})
}

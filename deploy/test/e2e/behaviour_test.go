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

// trusted lets a test say which address a visitor has.
const trusted = "LINKSTREAM_EDGE_TRUSTED_PROXIES=127.0.0.0/8"

// TestBehaviour has a link whose rules and card decide at each visit.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	const base = "https://example.com/"
	countries := filepath.Join(t.TempDir(), "countries.mmdb")
	enrichtest.WriteCountries(t, countries, map[string]enrichtest.Record{"192.0.2.0/24": enrichtest.In("AT")})
	s := startSystem(t, trusted, longCaches, "LINKSTREAM_EDGE_GEOIP="+countries, "LINKSTREAM_INGEST_GEOIP="+countries)
	owner := s.owner()
	hash := owner.Shorten(t, object{"long_url": base + "?utm_source=letter", "forward_query": true, "rules": []object{
		{"name": "ended", "if": object{"until": "2020-01-01T00:00:00Z"}, "url": base + "ended"},
		{"name": "phones", "if": object{"device": []string{"mobile"}, "language": []string{"de"}}, "url": base + "phones"},
		{"name": "chrome", "if": object{"browser": []string{"Chrome"}, "os": []string{"Linux"}, "query": object{"ref": "*"}},
			"url": base + "chrome"},
		{"name": "austria", "if": object{"country": []string{"AT"}, "from": "2020-01-01T00:00:00Z"}, "url": base + "austria"},
	}, "card": object{"title": "A card"}}).Want(t, http.StatusCreated).Body["hash"].(string)
	t.Run("the first rule decides whose conditions hold", func(t *testing.T) {
		for range 2 { // looked up, and from memory
			for _, visit := range []struct{ agent, language, address, query, location string }{
				{phone, "de-AT,en", "192.0.2.7", "", base + "phones"},
				{phone, "en,de", "192.0.2.7", "", base + "austria"},
				{phone, "en,de", "198.51.100.1", "", base + "?utm_source=letter"},
				{desktop, "de", "192.0.2.7", "?ref=x", base + "chrome?ref=x"},
				{desktop, "de", "198.51.100.1", "?other=x", base + "?utm_source=letter&other=x"},
			} {
				a := s.click(t, hash+visit.query, "User-Agent", visit.agent, "Accept-Language", visit.language,
					"X-Forwarded-For", visit.address)
				testkit.Equal(t, "Location", a.Header.Get("Location"), visit.location)
			}
		}
	})
	t.Run("previews get the card, counted as the click of a bot", func(t *testing.T) {
		const title = `<meta property="og:title" content="A card">`
		testkit.Must(t, s.answer(t, "/"+hash, http.StatusOK, title, "User-Agent", unfurler))
		owner.WaitTotal(t, hash, 11)
		testkit.Equal(t, "bots", number(t, owner.Stats(t, hash)["devices"].(object), "bot"), 1)
	})
	t.Run("reports have routes and campaigns, and filter by them", func(t *testing.T) {
		for _, path := range []string{"/api/v1/links/" + hash + "/report?" + week(), "/api/v1/report?" + week()} {
			report := owner.Get(t, path).Want(t, http.StatusOK).Body
			testkit.Equal(t, "routes", names(t, report, "routes"),
				map[string]int64{"phones": 2, "austria": 2, "chrome": 2, "": 4})
			testkit.Equal(t, "campaigns", names(t, report, "campaigns"), map[string]int64{"letter": 4, "": 6})
			report = owner.Get(t, path+"&route=austria").Want(t, http.StatusOK).Body
			testkit.Equal(t, "countries of a route", names(t, report, "countries"), map[string]int64{"AT": 2})
			report = owner.Get(t, path+"&campaign=letter").Want(t, http.StatusOK).Body
			testkit.Equal(t, "devices of a campaign", names(t, report, "devices"), map[string]int64{"mobile": 2, "desktop": 2})
		}
	})
	t.Run("a PATCH takes effect within a second", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(try int) func() error {
			to := fmt.Sprint(base, "try", try)
			rules := fmt.Sprintf(`{"rules":[{"name":"all","if":{"query":{"a":"b"}},"url":%q}]}`, to)
			owner.Call(t, http.MethodPatch, "/api/v1/links/"+hash, rules).Want(t, http.StatusOK)
			return func() error {
				got := s.visit(t, http.MethodHead, "/"+hash+"?a=b").Header.Get("Location")
				return testkit.Mismatch("Location", got, to+"?a=b")
			}
		})
	})
}

// TestVisitors has visitors who come again and again, to all edges, before and after kill -9.
func TestVisitors(t *testing.T) {
	t.Parallel()
	const visitors, base = 60, "https://example.com/"
	s := startSystem(t, trusted, longCaches)
	killed, other := s.startAnother(t, "edge")
	owner, began := s.owner(), time.Now().UTC()
	for _, hash := range []string{"varied", "another"} {
		owner.Link(t, object{"long_url": base, "custom_alias": hash, "variants": []object{
			{"name": "a", "url": base + "a", "weight": 40}, {"name": "b", "url": base + "b", "weight": 60}}})
	}
	visit := func(edge, hash, agent string, visitor int) string {
		a := call(t, http.MethodGet, edge+"/"+hash, "", "Host", address(s.edge), "User-Agent", agent,
			"X-Forwarded-For", fmt.Sprint("198.51.100.", visitor))
		testkit.Equal(t, "status", a.Status, http.StatusFound)
		return strings.TrimPrefix(a.Header.Get("Location"), base)
	}
	all := func(edge string) (variants string) {
		for visitor := range visitors {
			variants += visit(edge, "varied", desktop, visitor)
		}
		return variants
	}
	before := all(s.edge)
	if n := strings.Count(before, "a"); n < 5 || n > 45 || n+strings.Count(before, "b") != visitors {
		t.Errorf("variants %q", before)
	}
	testkit.Equal(t, "variants on another edge", all(other), before)
	killed.kill(t)
	killed.start(t)
	testkit.Equal(t, "variants after a kill", all(other), before)
	for visitor := range 5 {
		visit(other, "varied", crawler, 100+visitor)
	}
	for visitor := visitors / 2; visitor < 2*visitors; visitor++ { // half of them have been at the other link
		visit(s.edge, "another", desktop, visitor)
	}
	owner.WaitTotal(t, "varied", 3*visitors+5)
	owner.WaitTotal(t, "another", visitors*3/2)
	for path, want := range map[string]int{"/links/varied/report?": visitors, "/links/another/report?": visitors * 3 / 2,
		"/report?": 2 * visitors, "/links/varied/report?interval=hour&tz=America/New_York&": visitors} {
		sum := number(t, owner.Get(t, "/api/v1"+path+week()).Want(t, http.StatusOK).Body["totals"].(object), "visitors")
		midnight := time.Now().UTC().Day() != began.Day() // who comes before and after it counts twice
		if int(sum) != want && !(midnight && int(sum) > want && int(sum) <= 2*want) {
			t.Errorf("%s: %d visitors, want %d", path, sum, want)
		}
	}
	report := owner.Get(t, "/api/v1/links/varied/report?device=desktop&"+week()).Want(t, http.StatusOK).Body
	testkit.Equal(t, "visitors of a filtered report", report["totals"].(object)["visitors"], any(nil))
	n := int64(3 * strings.Count(before, "a"))
	testkit.Equal(t, "routes", names(t, report, "routes"), map[string]int64{"a": n, "b": 3*visitors - n})
}

package redirect_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/clientaddr"
	"linkstream/schema/enrich"
	"linkstream/schema/enrich/enrichtest"
	"linkstream/schema/testkit"
)

const (
	iPhone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
		"Version/18.1 Mobile/15E148 Safari/604.1"
	firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
	pixel   = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 " +
		"Mobile Safari/537.36"
	crawler = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	discord = "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)"
	pinApp  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
		"Mobile/15E148 [Pinterest/iOS]"
	tooEarly = 1_000_000_000
	tooLate  = 4_000_000_000
)

// newRuledEdge returns an edge that finds countries and trusts X-Forwarded-For of this machine.
func newRuledEdge(t testing.TB) *edge {
	return newEdge(t, func(e *edge) {
		path := filepath.Join(t.TempDir(), "countries.mmdb")
		enrichtest.WriteCountries(t, path, map[string]enrichtest.Record{"192.0.2.0/24": enrichtest.In("AT"),
			"2001:db8::/48": enrichtest.In("CH")})
		var err error
		e.cfg.Countries, err = enrich.OpenCountries(path, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		e.cfg.TrustedProxies = clientaddr.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
	})
}

// extend creates a link to https://example.com/ with a behaviour.
func (e *edge) extend(t testing.TB, hash string, x schema.Behaviour) schema.Link {
	t.Helper()
	x.Share(nil)
	return e.create(t, schema.Link{Hash: hash, URL: "https://example.com/", ForwardQuery: true, Behaviour: &x})
}

// rules returns rules that send visitors to https://example.com/0, /1 and so on.
func rules(conditions ...schema.Conditions) (rules []schema.Rule) {
	for i, c := range conditions {
		rules = append(rules, schema.Rule{Name: fmt.Sprint("rule", i), If: c, URL: fmt.Sprint("https://example.com/", i)})
	}
	return rules
}

func TestRules(t *testing.T) {
	e := newRuledEdge(t)
	type conditions = schema.Conditions
	addr := e.serve(t, 1)
	for i, c := range []struct {
		name   string
		rule   conditions
		match  [][4]string // agent, language, address, query
		others [][4]string
	}{
		{"device", conditions{Device: []string{"mobile", "tablet"}}, [][4]string{{iPhone}, {pixel}},
			[][4]string{{firefox}, {crawler}, {""}}},
		{"os", conditions{OS: []string{"iOS"}}, [][4]string{{iPhone}}, [][4]string{{pixel}, {firefox}}},
		{"browser", conditions{Browser: []string{"Firefox", "Googlebot"}}, [][4]string{{firefox}, {crawler}},
			[][4]string{{iPhone}}},
		{"language", conditions{Language: []string{"de", "fr-CH"}},
			[][4]string{{firefox, "de"}, {firefox, "DE-at,en;q=0.5"}, {firefox, "fr-CH"}},
			[][4]string{{firefox, "en,de;q=0.9"}, {firefox, "fr"}, {firefox, "fr-CA"}, {firefox, ""}, {firefox, "den"}}},
		{"a language of an old browser", conditions{Language: []string{"he"}},
			[][4]string{{firefox, "iw-IL"}, {firefox, "he"}}, [][4]string{{firefox, "id"}}},
		{"country", conditions{Country: []string{"AT", "CH"}}, [][4]string{{"", "", "192.0.2.7"}, {"", "", "2001:db8::1"}},
			[][4]string{{"", "", "198.51.100.1"}, {"", "", ""}}},
		{"query", conditions{Query: map[string]string{"ref": "a&b", "any": "*"}},
			[][4]string{{"", "", "", "any=&ref=a%26b"}, {"", "", "", "ref=x&ref=a%26b&any=1"}},
			[][4]string{{"", "", "", "ref=a%26b"}, {"", "", "", "any=1&ref=a"}, {}}},
		{"a time", conditions{From: tooEarly, Until: tooLate}, [][4]string{{}}, nil},
		{"a time before", conditions{Until: tooEarly}, nil, [][4]string{{}}},
		{"a time after", conditions{From: tooLate}, nil, [][4]string{{}}},
		{"conditions of two kinds", conditions{Device: []string{"mobile"}, Language: []string{"de"}},
			[][4]string{{iPhone, "de"}},
			[][4]string{{iPhone, "en"}, {firefox, "de"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			hash := fmt.Sprint("rule", i)
			e.extend(t, hash, schema.Behaviour{Rules: rules(c.rule)})
			visit := func(visits [][4]string, want string) {
				for _, v := range visits {
					path, forwarded := "/"+hash, want
					if v[3] != "" {
						path, forwarded = path+"?"+v[3], want+"?"+v[3]
					}
					resp, _ := send(t, addr, "GET", "http://sho.rt"+path, "User-Agent", v[0], "Accept-Language", v[1],
						"X-Forwarded-For", v[2])
					if got := resp.Header.Get("Location"); resp.StatusCode != 302 || got != forwarded {
						t.Errorf("%q: %d to %q, want %q", v, resp.StatusCode, got, forwarded)
					}
				}
			}
			visit(c.match, "https://example.com/0")
			visit(c.others, "https://example.com/")
		})
	}
}

func TestFirstRule(t *testing.T) {
	e := newRuledEdge(t)
	phones, germans := schema.Conditions{Device: []string{"mobile"}}, schema.Conditions{Language: []string{"de"}}
	link := e.extend(t, "abc", schema.Behaviour{Rules: rules(phones, germans)})
	unsafe := e.extend(t, "unsafe", schema.Behaviour{
		Rules: []schema.Rule{{Name: "a", If: phones, URL: "https://unsafe.example/"}}})
	addr := e.serve(t, 1)
	visit := func(hash, agent, language, want string) {
		t.Helper()
		resp, _ := send(t, addr, "GET", "http://sho.rt/"+hash, "User-Agent", agent, "Accept-Language", language)
		if got := fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Location")); got != want {
			t.Errorf("%s: answered %s, want %s", hash, got, want)
		}
	}
	visit("abc", iPhone, "de", "302 https://example.com/0")
	visit("abc", firefox, "de", "302 https://example.com/1")
	visit("abc", firefox, "en", "302 https://example.com/")
	visit("unsafe", iPhone, "en", "410 ")
	visit("unsafe", firefox, "en", "302 https://example.com/")
	if _, body := send(t, addr, "GET", "http://sho.rt/abc+"); !strings.Contains(body, `href="https://example.com/"`) {
		t.Errorf("the page about the link is\n%s", body)
	}
	clicks := e.clicks(t)
	testkit.Equal(t, "clicks", len(clicks), 4)
	testkit.Equal(t, "link of a click", clicks[0].LinkID, link.ID)
	change := schema.LinkEdit{Active: new(false)}
	testkit.Must(t, e.store.UpdateLink(t.Context(), &unsafe, change, time.Now()))
	testkit.Must(t, e.store.UpdateLink(t.Context(), &link,
		schema.LinkEdit{ExpiresAt: new(time.Now()), ExpiredURL: new("https://late.example/")}, time.Now()))
	e.resolver.Drop(schema.Change{AccountID: e.accountID})
	visit("unsafe", firefox, "en", "410 ")
	visit("abc", iPhone, "de", "302 https://late.example/")
}

// variant returns where a visitor is sent.
func (e *edge) variant(t testing.TB, hash string, visitor int) string {
	peer := &net.TCPAddr{IP: net.IPv4(198, 51, byte(visitor>>8), byte(visitor))}
	ctx := request("http://sho.rt/"+hash, peer, "User-Agent", fmt.Sprintf("Browser/%d (X11)", visitor>>16))
	e.handler.Serve(ctx)
	testkit.Equal(t, "status", ctx.Response.StatusCode(), 302)
	return string(ctx.Response.Header.Peek("Location"))
}

func TestVariants(t *testing.T) {
	e, other := newEdge(t, func(e *edge) { e.spoolCfg.MaxBytes = 256 << 20 }),
		newEdge(t, func(e *edge) { e.spoolCfg.MaxBytes = 256 << 20 })
	weights := []int{50, 30, 19, 1}
	x := schema.Behaviour{}
	for i, weight := range weights {
		x.Variants = append(x.Variants, schema.Variant{Name: fmt.Sprint("v", i), URL: fmt.Sprint("https://example.com/v", i),
			Weight: weight})
	}
	link := e.extend(t, "abc", x)
	other.extend(t, "abc", x) // has the same ID
	const visitors = 100_000
	counts, chosen := map[string]int{}, make([]string, visitors)
	for n := range visitors {
		chosen[n] = e.variant(t, "abc", n)
		counts[chosen[n]]++
		if n%100 == 0 && other.variant(t, "abc", n) != chosen[n] {
			t.Fatalf("visitor %d gets another variant on another edge", n)
		}
	}
	chi := 0.0
	for i, weight := range weights {
		expected := float64(visitors * weight / 100)
		difference := float64(counts[fmt.Sprint("https://example.com/v", i)]) - expected
		chi += difference * difference / expected
	}
	if chi > 16.27 { // p = 0.001 with three degrees of freedom
		t.Errorf("χ² = %.1f of %v", chi, counts)
	}
	next := *link.Behaviour
	next.Variants = []schema.Variant{x.Variants[1], x.Variants[0], x.Variants[2]}
	next.Variants[1].Weight = 51 // the weight of the smallest variant
	next.Share(link.Behaviour)
	testkit.Must(t, e.store.UpdateLink(t.Context(), &link, schema.LinkEdit{Behaviour: &next}, time.Now()))
	e.resolver.Drop(schema.Change{Hash: "abc"})
	for n := 0; n < visitors; n += 50 {
		if got := e.variant(t, "abc", n); got != chosen[n] && !strings.HasSuffix(chosen[n], "v3") {
			t.Fatalf("visitor %d gets %s after an edit of other weights, and had %s", n, got, chosen[n])
		}
	}
}

func TestCards(t *testing.T) {
	e := newEdge(t, nil)
	e.extend(t, "card", schema.Behaviour{Card: &schema.Card{Title: `A "title" & <more>`, Description: "ü",
		Image: new("https://example.com/ü.png")},
		Rules: rules(schema.Conditions{Browser: []string{"Googlebot"}})})
	e.extend(t, "bare", schema.Behaviour{Rules: rules(schema.Conditions{Browser: []string{"Googlebot"}})})
	addr := e.serve(t, 1)
	for _, agent := range []string{
		discord, "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "Twitterbot/1.0",
		"WhatsApp/2.23.20.0",
		"LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
		"TelegramBot (like TwitterBot)",
		"Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
		"Mastodon/4.3.1 (http.rb/5.2.0; +https://mastodon.example/) Bot",
		"Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)",
		"Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 " +
			"Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
		"Mozilla/5.0 (compatible; redditbot/1.0; +http://www.reddit.com/feedback)",
		"Pinterest/0.2 (+https://www.pinterest.com/bot.html)",
		"Viber/13.3.0 CFNetwork/1121.2.2 Darwin/19.3.0", "Synapse (bot; +https://github.com/matrix-org/synapse)",
		"facebookexternalhit/1.1;line-poker/1.0",
	} {
		resp, body := send(t, addr, "GET", "http://sho.rt/card", "User-Agent", agent)
		testkit.Equal(t, "status for "+agent, resp.StatusCode, 200)
		for _, part := range []string{`<meta property="og:title" content="A &#34;title&#34; &amp; &lt;more&gt;">`,
			`content="summary_large_image"`,
			`<meta property="og:description" content="ü">`,
			`<meta property="og:image" content="https://example.com/%C3%BC.png">`, `href="https://example.com/"`} {
			if !strings.Contains(body, part) {
				t.Errorf("%s is not in\n%s", part, body)
			}
		}
		resp, _ = send(t, addr, "GET", "http://sho.rt/bare", "User-Agent", agent)
		testkit.Equal(t, "status without a card", resp.StatusCode, 302)
	}
	testkit.Equal(t, "clicks", len(e.clicks(t)), 32)
	send(t, addr, "HEAD", "http://sho.rt/card", "User-Agent", discord)
	testkit.Equal(t, "clicks of HEAD", len(e.clicks(t)), 0)
	for _, agent := range []string{firefox, iPhone, crawler, pinApp} {
		resp, _ := send(t, addr, "GET", "http://sho.rt/card", "User-Agent", agent)
		testkit.Equal(t, "status for "+agent, resp.StatusCode, 302)
	}
}

// Both ways of answering give the same answers, for all links and requests.
func TestExtendedInstantAnswers(t *testing.T) {
	e := newRuledEdge(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	some := func(from ...string) (list []string) {
		for range random.IntN(3) {
			list = append(list, pick(from...))
		}
		return list
	}
	condition := func() (c schema.Conditions) {
		c.Device, c.OS, c.Browser = some("mobile", "desktop", "tablet"), some("iOS", "Linux", "Android"),
			some("Safari", "Firefox", "Other")
		c.Language, c.Country = some("de", "de-AT", "en"), some("AT", "CH")
		if random.IntN(3) == 0 {
			c.Query = map[string]string{pick("a", "b"): pick("1", "*", "")}
		}
		c.From, c.Until = schema.Moment(random.IntN(2)*tooEarly), schema.Moment(random.IntN(2)*tooLate)
		return c
	}
	for i := range 60 {
		x := schema.Behaviour{}
		for range random.IntN(4) {
			x.Rules = append(x.Rules, rules(condition(), condition())...)
		}
		if weight := 1 + random.IntN(99); random.IntN(2) == 0 && weight < 100 {
			x.Variants = []schema.Variant{{Name: "a", URL: "https://example.com/a#f", Weight: weight},
				{Name: "b", URL: "https://example.com/b", Weight: 100 - weight}}
		}
		if random.IntN(6) == 0 {
			x.Password = 1 + random.Int64N(1<<62)
		}
		if random.IntN(2) == 0 || x.IsZero() {
			x.Card = &schema.Card{Title: "title"}
		}
		link := e.extend(t, fmt.Sprint("x", i), x)
		if random.IntN(5) == 0 {
			edit := schema.LinkEdit{ExpiresAt: new(time.Now().Add(time.Duration(random.IntN(3)-1) * time.Hour)),
				ExpiredURL: new(pick("", "https://late.example/#f"))}
			testkit.Must(t, e.store.UpdateLink(t.Context(), &link, edit, time.Now()))
		}
	}
	addr := e.serve(t, 1)
	destinations := map[string]bool{}
	for range 400 {
		request := fmt.Sprintf("%s /x%d?%s HTTP/1.1\r\nHost: sho.rt\r\nUser-Agent: %s\r\nAccept-Language: "+
			"%s\r\nX-Forwarded-For: %s\r\n%sConnection: close\r\n",
			pick("GET", "GET", "HEAD"), random.IntN(60), pick("", "a=1", "b=&a=%31", "&&;=%"),
			pick(iPhone, firefox, pixel, crawler, discord, ""),
			pick("de-AT", "en;q=1", "", "*"), pick("192.0.2.7", "2001:db8::9", "198.51.100.3", ""),
			pick("", "", "Sec-Purpose: prefetch\r\n"))
		whole := say(t, addr, request+"Expect: nothing\r\n\r\n") // which loops leave alone
		before := e.metric(t, handedOver)
		if got := say(t, addr, request+"\r\n"); got != whole || len(got) == 0 {
			t.Fatalf("%s\nanswered\n%q\nwant\n%q", request, got, whole)
		}
		if e.metric(t, handedOver) != before {
			t.Fatal("not from memory")
		}
		_, location, _ := strings.Cut(whole, "Location: ")
		location, _, _ = strings.Cut(location, "\r\n")
		destinations[location] = true
	}
	if len(destinations) < 12 {
		t.Errorf("only %v", destinations)
	}
}

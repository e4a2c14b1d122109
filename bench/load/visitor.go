package load

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Visitor is the client that a request describes.
type Visitor struct{ UserAgent, Referrer string }

// Visitors returns n visitors in the shares that public links see: phones before desktops, apps of social networks,
// some crawlers and programs, and half of them without a referrer. The same seed makes the same visitors.
func Visitors(n int, seed uint64) []Visitor {
	random := rand.New(rand.NewPCG(seed, 0))
	visitors := make([]Visitor, n)
	for i := range visitors {
		visitors[i] = Visitor{UserAgent: pick(random, agents)(random), Referrer: pick(random, referrers)}
	}
	return visitors
}

// AppendHeader appends the lines that a browser sends after the request line, the empty one included. A short header
// has two lines.
func (v Visitor) AppendHeader(dst []byte, host string, short bool) []byte {
	dst = fmt.Appendf(dst, "Host: %s\r\nUser-Agent: %s\r\n", host, v.UserAgent)
	if short {
		return append(dst, "\r\n"...)
	}
	if v.Referrer != "" {
		dst = fmt.Appendf(dst, "Referer: %s\r\n", v.Referrer)
	}
	return append(dst, "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"+
		"Accept-Language: en-US,en;q=0.9\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nUpgrade-Insecure-Requests: 1\r\n"+
		"Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-User: ?1\r\n\r\n"...)
}

// weighted is a choice and its share of all.
type weighted[T any] struct {
	share int
	value T
}

func pick[T any](random *rand.Rand, choices []weighted[T]) T {
	all := 0
	for _, c := range choices {
		all += c.share
	}
	at := random.IntN(all)
	for _, c := range choices {
		if at -= c.share; at < 0 {
			return c.value
		}
	}
	panic("the shares do not add up")
}

// agents make User-Agent headers, with the versions that are about at the same time.
var agents = []weighted[func(*rand.Rand) string]{
	{24, func(r *rand.Rand) string {
		return fmt.Sprintf(
			"Mozilla/5.0 (iPhone; CPU iPhone OS %d_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "+
				"Version/%[1]d.%[2]d Mobile/15E148 Safari/604.1", 16+r.IntN(3), r.IntN(8))
	}},
	{26, func(r *rand.Rand) string {
		return fmt.Sprintf("Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 "+
			"Mobile Safari/537.36", chromeVersion(r))
	}},
	{5, func(r *rand.Rand) string {
		return fmt.Sprintf("Mozilla/5.0 (Linux; Android %d; %s) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/%d.0 "+
			"Chrome/%d.0.0.0 Mobile Safari/537.36", 12+r.IntN(4), phones[r.IntN(len(phones))], 25+r.IntN(4), 121+r.IntN(6))
	}},
	{6, func(r *rand.Rand) string {
		return fmt.Sprintf(
			"Mozilla/5.0 (iPhone; CPU iPhone OS 18_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "+
				"Mobile/22F76 Instagram %d.0.0.%d.%d", r.IntN(8), 370+r.IntN(20), 20+r.IntN(30), 70+r.IntN(30))
	}},
	{4, func(r *rand.Rand) string {
		return fmt.Sprintf("Mozilla/5.0 (Linux; Android %d; %s Build/UP1A.231005.007; wv) AppleWebKit/537.36 (KHTML, like "+
			"Gecko) Version/4.0 Chrome/%d.0.%d.%d Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/%d.0.0.%d.%d;]", 12+r.IntN(4),
			phones[r.IntN(len(phones))], chromeVersion(r), 6900+r.IntN(300), 30+r.IntN(99), 500+r.IntN(20), r.IntN(60),
			60+r.IntN(40))
	}},
	{15, func(r *rand.Rand) string {
		return fmt.Sprintf(
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 "+
				"Safari/537.36", chromeVersion(r))
	}},
	{5, func(r *rand.Rand) string {
		v := chromeVersion(r)
		return fmt.Sprintf(
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 "+
				"Safari/537.36 Edg/%d.0.0.0", v, v)
	}},
	{4, func(r *rand.Rand) string {
		return fmt.Sprintf("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "+
			"Version/18.%d Safari/605.1.15", r.IntN(7))
	}},
	{3, func(r *rand.Rand) string {
		v := 128 + r.IntN(18)
		return fmt.Sprintf("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:%d.0) Gecko/20100101 Firefox/%d.0", v, v)
	}},
	{2, func(r *rand.Rand) string {
		return fmt.Sprintf("Mozilla/5.0 (iPad; CPU OS 18_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "+
			"Version/18.0 Mobile/15E148 Safari/604.1", r.IntN(7))
	}},
	{2, fixed("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)")},
	{1, fixed("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)")},
	{1, fixed("Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)")},
	{1, fixed("WhatsApp/2.23.20.0")},
	{1, fixed("curl/8.14.1")},
}

func fixed(agent string) func(*rand.Rand) string { return func(*rand.Rand) string { return agent } }

// chromeVersion is usually one of the last few versions.
func chromeVersion(r *rand.Rand) int { return 142 - min(r.IntN(40), r.IntN(40), r.IntN(40)) }

var phones = strings.Split("SM-A156B,SM-A346B,SM-A546B,SM-G991B,SM-G998B,SM-S911B,SM-S918B,SM-S921B,SM-S928B,Pixel 6a,"+
	"Pixel 7,Pixel 7a,Pixel 8,Pixel 8 Pro,Pixel 9,2201117TY,2312DRA50G,23021RAAEG,M2101K6G,CPH2471,CPH2581,V2250,RMX3630",
	",")

var referrers = []weighted[string]{
	{50, ""},
	{13, "https://www.google.com/"},
	{8, "https://t.co/"},
	{8, "https://www.instagram.com/"},
	{7, "https://l.facebook.com/"},
	{4, "https://www.linkedin.com/"},
	{3, "https://www.youtube.com/"},
	{2, "https://www.reddit.com/"},
	{2, "https://news.ycombinator.com/"},
	{1, "https://www.bing.com/"},
	{1, "https://duckduckgo.com/"},
	{1, "https://mail.example.com/campaign/2026-11?utm_source=newsletter&utm_medium=email"},
}

package enrich_test

import (
	"slices"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/testkit"
)

const (
	webkit = "AppleWebKit/537.36 (KHTML, like Gecko) "
	iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
)

type knownAgent struct {
	name, header string
	device       schema.Device
	browser      string
}

var known = []knownAgent{
	{"Chrome on Windows", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + webkit + "Chrome/131.0.0.0 Safari/537.36",
		schema.Desktop, "Chrome"},
	{"Chrome on macOS", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) " + webkit + "Chrome/131.0.0.0 Safari/537.36",
		schema.Desktop, "Chrome"},
	{"Chrome on Linux", "Mozilla/5.0 (X11; Linux x86_64) " + webkit + "Chrome/131.0.0.0 Safari/537.36",
		schema.Desktop, "Chrome"},
	{"Chrome on ChromeOS", "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) " + webkit + "Chrome/131.0.0.0 Safari/537.36",
		schema.Desktop, "Chrome"},
	{"Firefox on Windows", "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
		schema.Desktop, "Firefox"},
	{"Firefox on Linux", "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
		schema.Desktop, "Firefox"},
	{"Safari on macOS", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
		"Version/18.1 Safari/605.1.15", schema.Desktop, "Safari"},
	{"Edge on Windows", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + webkit +
		"Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0", schema.Desktop, "Edge"},
	{"Opera on Windows", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + webkit +
		"Chrome/131.0.0.0 Safari/537.36 OPR/115.0.0.0", schema.Desktop, "Opera"},
	{"Vivaldi on Linux", "Mozilla/5.0 (X11; Linux x86_64) " + webkit +
		"Chrome/131.0.0.0 Safari/537.36 Vivaldi/7.0.3495.11", schema.Desktop, "Vivaldi"},
	{"Internet Explorer 8", "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; Tablet PC 2.0)",
		schema.Desktop, "Internet Explorer"},

	{"Safari on an iPhone", iphone + "Version/18.1 Mobile/15E148 Safari/604.1", schema.Mobile, "Safari"},
	{"Chrome on an iPhone", iphone + "CriOS/131.0.6778.73 Mobile/15E148 Safari/604.1", schema.Mobile, "Chrome"},
	{"Firefox on an iPhone", iphone + "FxiOS/132.0 Mobile/15E148 Safari/605.1.15", schema.Mobile, "Firefox"},
	{"Edge on an iPhone", iphone + "Version/18.0 EdgiOS/131.0.2903.48 Mobile/15E148 Safari/605.1.15",
		schema.Mobile, "Edge"},
	{"Google's app on an iPhone", iphone + "GSA/343.0.695551749 Mobile/15E148 Safari/604.1", schema.Mobile, "Safari"},
	{"Chrome on an Android phone", "Mozilla/5.0 (Linux; Android 10; K) " + webkit +
		"Chrome/131.0.0.0 Mobile Safari/537.36", schema.Mobile, "Chrome"},
	{"Chrome on a phone by Cubot", "Mozilla/5.0 (Linux; Android 10; CUBOT X30) " + webkit +
		"Chrome/110.0.0.0 Mobile Safari/537.36", schema.Mobile, "Chrome"},
	{"Firefox on an Android phone", "Mozilla/5.0 (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0",
		schema.Mobile, "Firefox"},
	{"Samsung Internet on a phone", "Mozilla/5.0 (Linux; Android 10; K) " + webkit +
		"SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile Safari/537.36", schema.Mobile, "Samsung Browser"},
	{"Opera on an Android phone", "Mozilla/5.0 (Linux; Android 10; K) " + webkit +
		"Chrome/131.0.0.0 Mobile Safari/537.36 OPR/85.0.0.0", schema.Mobile, "Opera"},
	{"Edge on an Android phone", "Mozilla/5.0 (Linux; Android 10; K) " + webkit +
		"Chrome/131.0.0.0 Mobile Safari/537.36 EdgA/131.0.0.0", schema.Mobile, "Edge"},
	{"Opera Mini", "Opera/9.80 (Android; Opera Mini/81.0.2254/191.303; U; en) Presto/2.12.423 Version/12.16",
		schema.Mobile, "Opera Mini"},
	{"Huawei's browser", "Mozilla/5.0 (Linux; Android 12; HarmonyOS; NOH-AN00) " + webkit +
		"Chrome/114.0.5735.196 HuaweiBrowser/15.0.4.312 Mobile Safari/537.36", schema.Mobile, "Huawei Browser"},
	{"an HTTP client of an Android app", "Dalvik/2.1.0 (Linux; U; Android 13; SM-S901B Build/TP1A.220624.014)", schema.Bot,
		enrich.OtherBrowser},

	{"Facebook's app on an iPhone", iphone +
		"Mobile/22B83 [FBAN/FBIOS;FBAV/490.0.0.36.109;FBBV/661238917;FBDV/iPhone14,5;FBID/phone;FBLC/en_US]", schema.Mobile,
		"Facebook App"},
	{"Facebook's app on Android", "Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007; wv) " + webkit +
		"Version/4.0 Chrome/131.0.6778.39 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/490.0.0.63.82;]", schema.Mobile,
		"Facebook App"},
	{"Instagram's app on an iPhone", iphone +
		"Mobile/22B83 Instagram 357.1.0.32.100 (iPhone14,5; iOS 18_1; en_US; en; scale=3.00)", schema.Mobile,
		"Instagram App"},
	{"WeChat on an iPhone", iphone + "Mobile/15E148 MicroMessenger/8.0.54(0x18003630) NetType/WIFI Language/en",
		schema.Mobile, enrich.OtherBrowser},
	{"LinkedIn's app on an iPhone", iphone + "Mobile/15E148 LinkedInApp", schema.Mobile, enrich.OtherBrowser},
	{"DuckDuckGo on Android", "Mozilla/5.0 (Linux; Android 14; Pixel 8) " + webkit +
		"Chrome/131.0.0.0 Mobile DuckDuckGo/5 Safari/537.36", schema.Mobile, enrich.OtherBrowser},

	{"Safari on an iPad that requests mobile sites", "Mozilla/5.0 (iPad; CPU OS 17_7 like Mac OS X) " +
		"AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.7 Mobile/15E148 Safari/604.1", schema.Tablet, "Safari"},
	{"Chrome on an Android tablet", "Mozilla/5.0 (Linux; Android 10; K) " + webkit + "Chrome/131.0.0.0 Safari/537.36",
		schema.Tablet, "Chrome"},
	{"Samsung Internet on a tablet", "Mozilla/5.0 (Linux; Android 13; SM-X700) " + webkit +
		"SamsungBrowser/26.0 Chrome/122.0.0.0 Safari/537.36", schema.Tablet, "Samsung Browser"},
	{"Firefox on an Android tablet", "Mozilla/5.0 (Android 14; Tablet; rv:132.0) Gecko/132.0 Firefox/132.0",
		schema.Tablet, "Firefox"},
	{"Silk on a Fire tablet", "Mozilla/5.0 (Linux; Android 9; KFMAWI) " + webkit +
		"Silk/120.3.1 like Chrome/120.0.6099.230 Safari/537.36", schema.Tablet, "Safari"},

	{"Googlebot", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", schema.Bot, "Googlebot"},
	{"Googlebot as a phone", "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) " + webkit +
		"Chrome/131.0.6778.69 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", schema.Bot,
		"Googlebot"},
	{"bingbot", "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; " +
		"+http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36", schema.Bot, "Bingbot"},
	{"Bing's preview", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + webkit + "Chrome/119 Safari/537.36 BingPreview/1.0b",
		schema.Bot, enrich.OtherBrowser},
	{"GPTBot", "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
		schema.Bot, "GPTBot"},
	{"ClaudeBot",
		"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", schema.Bot,
		"ClaudeBot"},
	{"Applebot", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
		"Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)", schema.Bot, "Applebot"},
	{"Baiduspider", "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)", schema.Bot,
		enrich.OtherBrowser},
	{"Bytespider", "Mozilla/5.0 (Linux; Android 5.0) " + webkit +
		"Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)", schema.Bot, "Bytespider"},
	{"a crawler that also names a browser", "Mozilla/5.0 (X11; Linux x86_64) " + webkit +
		"Chrome/119.0.6045.214 Safari/537.36 bitlybot/3.0", schema.Bot, enrich.OtherBrowser},
	{"headless Chrome", "Mozilla/5.0 (X11; Linux x86_64) " + webkit + "HeadlessChrome/131.0.0.0 Safari/537.36", schema.Bot,
		"Headless Chrome"},
	{"Facebook's preview", "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", schema.Bot,
		"facebookexternalhit"},
	{"iMessage's preview", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) " +
		"Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0", schema.Bot, "Safari"},
	{"Twitterbot", "Twitterbot/1.0", schema.Bot, "Twitterbot"},
	{"Slack's preview", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", schema.Bot, enrich.OtherBrowser},
	{"WhatsApp's preview", "WhatsApp/2.24.23.78 A", schema.Bot, enrich.OtherBrowser},
	{"Telegram's preview", "TelegramBot (like TwitterBot)", schema.Bot, enrich.OtherBrowser},
	{"Discord's preview", "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)", schema.Bot,
		enrich.OtherBrowser},
	{"Skype's preview", "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
		schema.Bot, enrich.OtherBrowser},

	{"curl", "curl/8.5.0", schema.Bot, "curl"},
	{"Wget", "Wget/1.21.4", schema.Bot, "Wget"},
	{"Python", "python-requests/2.32.3", schema.Bot, "python-requests"},
	{"Go", "Go-http-client/1.1", schema.Bot, "Go-http-client"},
	{"okhttp", "okhttp/4.12.0", schema.Bot, "okhttp"},
	{"no header", "", schema.Bot, enrich.OtherBrowser},
	{"a dash", "-", schema.Bot, enrich.OtherBrowser},
	{"a header with Mozilla alone", "Mozilla/5.0", schema.Bot, enrich.OtherBrowser},
	{"a monitor that sends a browser's header", "Mozilla/5.0 (Windows NT 6.1; WOW64) " + webkit +
		"Chrome/41.0.2228.0 Safari/537.21 StatusCake", schema.Bot, "Chrome"},
	{"a proxy of images in emails", "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com " +
		"GoogleImageProxy)", schema.Bot, enrich.OtherBrowser},
	{"binary data", "\x00\xff(((;;;///\x01 \xc3\x28", schema.Bot, enrich.OtherBrowser},
	{"unclosed brackets", strings.Repeat("([", 256), schema.Bot, enrich.OtherBrowser},
}

func TestParseAgent(t *testing.T) {
	for _, k := range known {
		t.Run(k.name, func(t *testing.T) {
			if got := enrich.ParseAgent(k.header); got.Device != k.device || got.Browser != k.browser {
				t.Errorf("got %s, %s; want %s, %s", got.Device, got.Browser, k.device, k.browser)
			}
		})
	}
}

func TestOperatingSystem(t *testing.T) {
	for name, want := range map[string]string{
		"Chrome on Windows": "Windows", "Chrome on macOS": "macOS", "Chrome on Linux": "Linux",
		"Chrome on ChromeOS":  "ChromeOS",
		"Safari on an iPhone": "iOS", "Safari on an iPad that requests mobile sites": "iOS",
		"Chrome on an Android phone":   "Android",
		"Firefox on an Android tablet": "Android", "Samsung Internet on a tablet": "Android",
		"Facebook's app on an iPhone": "iOS",
		"Internet Explorer 8":         "Windows", "curl": "Other", "no header": "Other", "binary data": "Other",
	} {
		i := slices.IndexFunc(known, func(k knownAgent) bool { return k.name == name })
		testkit.Equal(t, name, enrich.ParseAgent(known[i].header).OS, want)
	}
}

func BenchmarkParseAgent(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		enrich.ParseAgent(known[i%len(known)].header)
	}
}

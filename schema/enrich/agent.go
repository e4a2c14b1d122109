package enrich

import (
	"regexp"
	"slices"
	"strings"

	"linkstream/schema"
	"linkstream/schema/enrich/programs"
)

// OtherBrowser is the name of every browser that is not in the list.
const OtherBrowser = schema.OtherName

// Agent is the device, the browser and the operating system that a User-Agent header names.
type Agent struct {
	Device  schema.Device
	Browser string
	OS      string
	// DrawsPreviews is true for a program that draws previews of links in chats and social networks.
	DrawsPreviews bool
}

// ParseAgent parses a User-Agent header. Browser and OS are names from fixed lists or Other: stores keep a counter per
// name, and clients send any name they like. Every program is a Bot, useful or not.
func ParseAgent(header string) Agent {
	a := Agent{OS: systems.find(header)}
	if !programs.Match(header) {
		a.Device, a.Browser = device(header, a.OS), browsers.find(header)
	}
	switch {
	case a.Device == "" && (a.Browser == "" || a.Browser == OtherBrowser): // headers of people name one of them
		return Agent{schema.Bot, bots.find(header), a.OS, programs.DrawPreviews(header)}
	case a.Device == "":
		a.Device = schema.Other
	}
	return a
}

// KnownBrowser reports whether ParseAgent may return a name of a browser.
func KnownBrowser(name string) bool {
	return name == OtherBrowser || browsers.has(name) || bots.has(name)
}

// KnownOS reports whether ParseAgent may return a name of an operating system.
func KnownOS(name string) bool { return name == schema.OtherName || systems.has(name) }

// names are parts of headers and what they stand for. Of the parts that a header contains, the first in the list
// counts.
type names []struct{ part, name string }

func (n names) find(header string) string {
	for i := range n {
		if strings.Contains(header, n[i].part) {
			return n[i].name
		}
	}
	return schema.OtherName
}

func (n names) has(name string) bool {
	return slices.ContainsFunc(n, func(entry struct{ part, name string }) bool { return entry.name == name })
}

// Names of operating systems.
const (
	windows, windowsPhone, android, macOS, iOS = "Windows", "Windows Phone", "Android", "macOS", "iOS"
	linux, freeBSD, chromeOS, blackBerry       = "Linux", "FreeBSD", "ChromeOS", "BlackBerry"
	harmony                                    = "Harmony"
)

// systems begin with those that also name others: Windows Phone names Android and iPhone. On an iPad that requests
// desktop sites, browsers name a Mac, and all but Safari also themselves.
var systems = names{
	{"Windows Phone", windowsPhone}, {"like Android", linux}, {"OpenHarmony", harmony}, {"Tizen", linux},
	{"Android", android}, {"Adr ", android}, {"HarmonyOS", harmony}, {"SamsungBrowser/", android}, {"CriOS/", iOS},
	{"FxiOS/", iOS}, {"EdgiOS/", iOS}, {"OPiOS/", iOS}, {"OPT/", iOS}, {"GSA/", iOS}, {" Mobile/", iOS},
	{"FBSN/i", iOS}, {"FBAN/FBIOS", iOS}, {"ForiOS;", iOS}, {"iPhone", iOS}, {"iPad", iOS}, {"iPod", iOS},
	{"Windows", windows}, {"Macintosh", macOS}, {"CrOS", chromeOS}, {"BlackBerry", blackBerry},
	{"BB10", blackBerry}, {"FreeBSD", freeBSD}, {"Linux", linux}, {"; android ", android}, {"FBAN/", android},
}

// browsers begin with apps that show pages, which also name the browser of the system.
var browsers = names{
	{"Instagram", "Instagram App"}, {"Barcelona ", "Threads App"}, {"MicroMessenger/", "WeChat App"},
	{"Messenger", "Messenger App"}, {"MESSENGER", "Messenger App"}, {"Orca-Android", "Messenger App"},
	{"FBAN/", "Facebook App"}, {"FB_IAB/", "Facebook App"}, {"MetaIAB ", "Facebook App"},
	{"BytedanceWebview", "TikTok App"}, {"musical_ly", "TikTok App"}, {"musically/", "TikTok App"},
	{"trill_", "TikTok App"}, {"Snapchat", "Snapchat App"}, {"LinkedInApp", "LinkedIn App"},
	{"Twitter for ", "X App"}, {"TwitterAndroid", "X App"}, {" Line/", "LINE App"}, {"KAKAOTALK", "KakaoTalk App"},
	{"Pinterest", "Pinterest App"}, {"Reddit/", "Reddit App"}, {"Telegram-", "Telegram App"},
	{"Viber/", "Viber App"}, {"Zalo ", "Zalo App"}, {"NAVER(", "NAVER App"}, {" QQ/", "QQ App"},
	{"Weibo ", "Weibo App"}, {"Slack/", "Slack App"}, {"discord/", "Discord App"}, {"Teams/", "Teams App"},
	{"GSA/", "Google App"},

	{"OPR/", "Opera"}, {"OPX/", "Opera"}, {"OPT/", "Opera Touch"}, {"Opera Mini/", "Opera Mini"},
	{"OPiOS/", "Opera Mini"}, {"Opera", "Opera"}, {"EdgiOS/", "Edge"}, {"EdgA/", "Edge"}, {"Edg/", "Edge"},
	{"Edge/", "Edge"}, {"YaBrowser/", "Yandex Browser"}, {"YaSearchBrowser/", "Yandex Browser"},
	{"Vivaldi/", "Vivaldi"}, {"UCBrowser/", "UC Browser"}, {"UCWEB/", "UC Browser"}, {" UBrowser/", "UC Browser"},
	{"QQBrowser/", "QQ Browser"}, {"MiuiBrowser/", "Miui Browser"}, {"HuaweiBrowser/", "Huawei Browser"},
	{"HeyTapBrowser/", "HeyTap Browser"}, {"VivoBrowser/", "Vivo Browser"}, {"DuckDuckGo/", "DuckDuckGo"},
	{"Ddg/", "DuckDuckGo"}, {"Safari/604.1 Brave", "Brave"}, {"Whale/", "Whale"}, {"coc_coc_browser/", "Coc Coc"},
	{"OculusBrowser/", "Oculus Browser"}, {"Silk/", "Silk"}, {"SamsungBrowser/", "Samsung Browser"},
	{"Focus/", "Firefox Focus"}, {"Klar/", "Firefox Focus"}, {"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"},
	{"CriOS/", "Chrome"}, {"MSIE ", "Internet Explorer"}, {"Trident/", "Internet Explorer"}, {"Chrome/", "Chrome"},
	{"; Android", "Android browser"}, {"Safari", "Safari"}, {"Lynx/", "Lynx"}, {"w3m/", "w3m"},
	{"Links (", "Links"}, {"ELinks/", "ELinks"},
}

var bots = names{
	{"Googlebot", "Googlebot"}, {"AdsBot-Google", "Google Ads Bot"}, {"Mediapartners-Google", "Google Ads Bot"},
	{"bingbot", "Bingbot"}, {"Applebot", "Applebot"}, {"YandexBot", "YandexBot"}, {"Bytespider", "Bytespider"},
	{"facebookexternalhit", "facebookexternalhit"}, {"Twitterbot", "Twitterbot"}, {"GPTBot", "GPTBot"},
	{"ClaudeBot", "ClaudeBot"}, {"HeadlessChrome", "Headless Chrome"}, {"curl/", "curl"}, {"Wget/", "Wget"},
	{"HTTPie/", "HTTPie"}, {"PostmanRuntime/", "PostmanRuntime"}, {"python-requests/", "python-requests"},
	{"Go-http-client/", "Go-http-client"}, {"okhttp/", "okhttp"}, {"axios/", "axios"},
}

// elsewhere are parts of the headers of televisions, consoles, headsets, cars and watches.
var elsewhere = []string{
	"BRAVIA", "CrKey", "Chromecast", "NetCast", "(DTV", "Web0S", "OMI/", "Viera", "VIDAA", "Roku", "MIBOX",
	"Nexus Player", "PlayStation", "PLAYSTATION", "(PS3", "Nintendo", "Xbox", "OculusBrowser/", "; Quest 2",
	"; Quest 3", "; Quest Pro", "PicoBrowser/", "Wolvic/", " VR Safari", "Mobile VR;", "Tesla/", "QtCarBrowser",
	"watchOS", "tvOS",
}

// television matches the word TV, also in SmartTV but not in HTV31, a phone, and the models of Fire TV.
var television = regexp.MustCompile(`(?:^|[^A-Z])TV(?:[^A-Za-z]|$)|; AFT[A-Z]`)

// device returns the device of a browser on an operating system, "" if the header names none. Browsers of Android and
// many other systems say whether they are on a phone, and few that they are on a tablet.
func device(header, os string) schema.Device {
	phone := contains(header, "Mobi", "MIDP", "Opera Mini", "Symbian")
	switch {
	case contains(header, elsewhere...) || contains(header, "TV", "; AFT") && television.MatchString(header):
		return schema.Other
	case contains(header, "iPad", "Kindle", "Kobo", "PocketBook", "Silk/"),
		os == iOS && contains(header, "Macintosh"),
		os == android && !phone && contains(header, "AppleWebKit"),
		os != windows && contains(header, "Tablet", "tablet"): // old Windows names its support for pens
		return schema.Tablet
	case phone, os == iOS, os == android, os == windowsPhone, os == blackBerry,
		os == harmony && !contains(header, "(PC;"):
		return schema.Mobile
	case os != schema.OtherName, contains(header, "X11"):
		return schema.Desktop
	default:
		return ""
	}
}

func contains(header string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(header, part) })
}

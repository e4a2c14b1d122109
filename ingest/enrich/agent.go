package enrich

import (
	"strings"

	"github.com/mileusna/useragent"

	"linkstream/schema"
)

// OtherBrowser stands for every browser that is not named.
const OtherBrowser = "Other"

// Agent is what a User-Agent header says.
type Agent struct {
	Device  schema.Device
	Browser string
}

// ParseAgent reads a User-Agent header. Browsers come from a fixed list: clients write what they like into the header, and
// each distinct name is counted by itself.
func ParseAgent(header string) Agent {
	ua := useragent.Parse(header)
	a := Agent{Device: device(ua), Browser: OtherBrowser}
	if browsers[ua.Name] {
		a.Browser = ua.Name
	}
	return a
}

func device(ua useragent.UserAgent) schema.Device {
	switch {
	case ua.Bot || saysBot(ua.String):
		return schema.Bot
	case ua.Tablet || androidTablet(ua):
		return schema.Tablet
	case ua.Mobile:
		return schema.Mobile
	case ua.Desktop:
		return schema.Desktop
	default:
		return schema.Other
	}
}

// saysBot finds crawlers and link previews that the library takes for the browser they name beside themselves. Cubot is
// a make of phones.
func saysBot(header string) bool {
	header = strings.ReplaceAll(strings.ToLower(header), "cubot", "")
	for _, word := range []string{"bot", "crawler", "spider", "preview"} {
		if strings.Contains(header, word) {
			return true
		}
	}
	return strings.HasPrefix(header, "whatsapp/")
}

// androidTablet tells tablets from phones as Android's browsers do: phones say Mobile. The library takes both for
// phones. An iPad whose browser asks for desktop sites cannot be told from a Mac.
func androidTablet(ua useragent.UserAgent) bool {
	return ua.IsAndroid() && strings.Contains(ua.String, "AppleWebKit") && !strings.Contains(ua.String, "Mobile")
}

var browsers = func() map[string]bool {
	set := make(map[string]bool)
	for _, name := range []string{
		useragent.Chrome, useragent.HeadlessChrome, useragent.Firefox, useragent.Safari, useragent.Edge,
		useragent.Opera, useragent.OperaMini, useragent.OperaTouch, useragent.Vivaldi, useragent.InternetExplorer,
		useragent.SamsungBrowser, "Huawei Browser", "Miui Browser", "Android browser",
		useragent.FacebookApp, useragent.InstagramApp, useragent.TiktokApp,
		useragent.Googlebot, useragent.GoogleAdsBot, useragent.Bingbot, useragent.Applebot, useragent.YandexBot,
		useragent.Twitterbot, useragent.FacebookExternalHit, "Bytespider", "GPTBot", "ClaudeBot",
		"curl", "Wget", "HTTPie", "PostmanRuntime", "python-requests", "Go-http-client", "okhttp", "axios",
	} {
		set[name] = true
	}
	return set
}()

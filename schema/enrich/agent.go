package enrich

import (
	"strings"

	"github.com/mileusna/useragent"

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
}

// ParseAgent parses a User-Agent header. Browser and OS are names from fixed lists or Other: stores keep a counter per
// name, and clients send any name they like.
func ParseAgent(header string) Agent {
	ua := useragent.Parse(header)
	a := Agent{Device: device(ua), Browser: OtherBrowser, OS: schema.OtherName}
	if browsers[ua.Name] {
		a.Browser = ua.Name
	}
	if systems[ua.OS] {
		a.OS = ua.OS
	}
	return a
}

// KnownBrowser reports whether ParseAgent may return a name of a browser.
func KnownBrowser(name string) bool { return browsers[name] || name == OtherBrowser }

// KnownOS reports whether ParseAgent may return a name of an operating system.
func KnownOS(name string) bool { return systems[name] || name == schema.OtherName }

// systems are operating systems. An iPad that requests desktop sites sends the header of a Mac.
var systems = map[string]bool{
	useragent.Windows: true, useragent.WindowsPhone: true, useragent.Android: true, useragent.MacOS: true,
	useragent.IOS:   true,
	useragent.Linux: true, useragent.FreeBSD: true, useragent.ChromeOS: true, useragent.BlackBerry: true,
	useragent.Harmony: true,
}

// device returns Bot for every program, useful or not.
func device(ua useragent.UserAgent) schema.Device {
	switch {
	case ua.Bot || programs.Match(ua.String):
		return schema.Bot
	case ua.Tablet || isAndroidTablet(ua):
		return schema.Tablet
	case ua.Mobile:
		return schema.Mobile
	case ua.Desktop:
		return schema.Desktop
	default:
		return schema.Other
	}
}

// isAndroidTablet reports whether an Android browser runs on a tablet: on phones its header contains "Mobile". The
// library takes both for phones.
func isAndroidTablet(ua useragent.UserAgent) bool {
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

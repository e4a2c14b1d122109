// Package agent tells devices and browsers from User-Agent headers.
package agent

import (
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

// Parse reads a User-Agent header. Browsers come from a fixed list: clients write what they like into the header, and
// each distinct name is counted by itself.
func Parse(header string) Agent {
	ua := useragent.Parse(header)
	a := Agent{Device: device(ua), Browser: OtherBrowser}
	if browsers[ua.Name] {
		a.Browser = ua.Name
	}
	return a
}

func device(ua useragent.UserAgent) schema.Device {
	switch {
	case ua.Bot:
		return schema.Bot
	case ua.Tablet:
		return schema.Tablet
	case ua.Mobile:
		return schema.Mobile
	case ua.Desktop:
		return schema.Desktop
	default:
		return schema.Other
	}
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

// cacheLen bounds the headers a Cache remembers. Real traffic has some tens of thousands of them.
const cacheLen = 1 << 16

// Cache remembers what headers said. It belongs to one goroutine.
type Cache struct{ agents map[string]Agent }

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{agents: make(map[string]Agent)} }

// Parse is like the function Parse. It does not allocate for a header it remembers.
func (c *Cache) Parse(header []byte) Agent {
	if a, ok := c.agents[string(header)]; ok {
		return a
	}
	if len(c.agents) >= cacheLen {
		clear(c.agents) // rare: a refill costs less than keeping an order of use for every click
	}
	key := string(header)
	a := Parse(key)
	c.agents[key] = a
	return a
}

package dashboard

import (
	"strings"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// sources are the names that people know referrers by: hosts without "www.", and IDs of apps.
var sources = map[string]string{
	"amazon.com": "Amazon", "baidu.com": "Baidu", "bing.com": "Bing", "bsky.app": "Bluesky", "go.bsky.app": "Bluesky",
	"chat.openai.com": "ChatGPT", "chatgpt.com": "ChatGPT", "claude.ai": "Claude", "discord.com": "Discord",
	"duckduckgo.com": "DuckDuckGo", "ecosia.org": "Ecosia", "facebook.com": "Facebook", "l.facebook.com": "Facebook",
	"lm.facebook.com": "Facebook", "m.facebook.com": "Facebook", "com.facebook.katana": "Facebook app",
	"com.facebook.orca": "Messenger", "messenger.com": "Messenger", "l.messenger.com": "Messenger",
	"gemini.google.com": "Gemini", "github.com": "GitHub", "mail.google.com": "Gmail",
	"com.google.android.gm": "Gmail app", "google.com": "Google", "google.co.uk": "Google", "google.de": "Google",
	"google.fr": "Google", "com.google.android.googlequicksearchbox": "Google app", "news.google.com": "Google News",
	"news.ycombinator.com": "Hacker News", "instagram.com": "Instagram", "l.instagram.com": "Instagram",
	"com.instagram.android": "Instagram app", "linkedin.com": "LinkedIn", "lnkd.in": "LinkedIn",
	"com.linkedin.android": "LinkedIn app", "lobste.rs": "Lobsters", "mastodon.social": "Mastodon",
	"medium.com": "Medium", "outlook.live.com": "Outlook", "outlook.office.com": "Outlook",
	"com.microsoft.office.outlook": "Outlook app", "perplexity.ai": "Perplexity", "pinterest.com": "Pinterest",
	"com.pinterest": "Pinterest app", "producthunt.com": "Product Hunt", "quora.com": "Quora", "reddit.com": "Reddit",
	"old.reddit.com": "Reddit", "out.reddit.com": "Reddit", "com.reddit.frontpage": "Reddit app",
	"slack.com": "Slack", "app.slack.com": "Slack", "com.slack": "Slack app", "snapchat.com": "Snapchat",
	"stackoverflow.com": "Stack Overflow", "substack.com": "Substack", "t.me": "Telegram",
	"web.telegram.org": "Telegram", "org.telegram.messenger": "Telegram app", "teams.microsoft.com": "Teams",
	"threads.net": "Threads", "l.threads.net": "Threads", "threads.com": "Threads", "tiktok.com": "TikTok",
	"com.zhiliaoapp.musically": "TikTok app", "twitch.tv": "Twitch", "vk.com": "VK", "web.whatsapp.com": "WhatsApp",
	"com.whatsapp": "WhatsApp app", "wikipedia.org": "Wikipedia", "en.wikipedia.org": "Wikipedia", "x.com": "X",
	"t.co": "X", "twitter.com": "X", "com.twitter.android": "X app", "xing.com": "Xing",
	"mail.yahoo.com": "Yahoo Mail", "yahoo.com": "Yahoo", "search.yahoo.com": "Yahoo", "yandex.ru": "Yandex",
	"youtube.com": "YouTube", "m.youtube.com": "YouTube", "youtu.be": "YouTube",
	"com.google.android.youtube": "YouTube app",
}

// shownName returns a name of a dimension as people know it.
func shownName(by schema.Dimension, name string) string {
	if known := sources[strings.TrimPrefix(name, "www.")]; by == schema.ByReferrer && known != "" {
		return known
	}
	return clickreport.WordsOf(by).Shown(name)
}

// shownNames returns the names of a list. Hosts of one source are filters of their own, so a name that several of them
// have is followed by the host.
func shownNames(by schema.Dimension, names []schema.NameCount) func(string) string {
	times := map[string]int{}
	for _, name := range names {
		times[shownName(by, name.Name)]++
	}
	return func(name string) string {
		shown := shownName(by, name)
		if times[shown] > 1 {
			shown += " (" + name + ")"
		}
		return shown
	}
}

// deviceIcons are the icons of devices.
var deviceIcons = map[string]string{string(schema.Desktop): "monitor", string(schema.Mobile): "smartphone",
	string(schema.Tablet): "tablet"}

// Icon returns the icon of a device, "" without one.
func (s share) Icon() string {
	if s.By == string(schema.ByDevice) {
		return deviceIcons[s.Raw]
	}
	return ""
}

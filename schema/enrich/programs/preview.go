package programs

import (
	"strings"
	"sync"
)

// previews are patterns of the User-Agent headers of programs that draw previews of links, in lower case. iMessage
// calls itself by Facebook's and Twitter's names, LINE, KakaoTalk and Instagram by Facebook's, Signal by WhatsApp's.
var previews = []string{
	"preview", "unfurl", "onebox", "embed", "opengraph", "open_graph", "iframely", "cardyb", "linkexpanding", "metatag",
	// social networks
	"facebookexternalhit", "facebot", "meta-externalagent", "meta-externalfetcher", "meta-externalhit", "twitterbot",
	"linkedinbot", "pinterest", "redditbot", "vkshare", "odklbot", "tumblr/", "xing-contenttabreceiver", "xing bot",
	"snapchat/", "bluesky", "flipboardproxy", "quora", "goodreads", "notion/", "peekbot",
	// chats
	"slackbot", "slack-imgproxy", "discordbot", "whatsapp", "telegrambot", "teams", "viber", "line-poker", "zalo",
	"kakaotalk-scrap", "synapse", "dendrite", "matrix", "mattermost", `rocket\.chat`, "zulip", "nextcloud", "zoom/",
	`zoom\.us`, "webex", "google-pagerenderer", "googlemessages", "keybase", "steamchaturl", "groupme", "richlink",
	"dingtalkbot-linkservice", "lark", "january/", "guilded",
	// servers of the fediverse
	"mastodon", "misskey", "summaly", "sharkey", "firefish", "calckey", "iceshrimp", "foundkey", "cherrypick", "pleroma",
	"akkoma", "rebased", "pixelfed", "friendica", "peertube", "lemmy", "mbin", "kbin", "piefed", "gotosocial", "hubzilla",
	"diaspora", "mobilizon", "bookwyrm", "funkwhale", "writefreely", "owncast", "socialhome", "smithereen", "takahe",
	"snac/", "wafrn", "activitypub",
	// forums
	"discourse", "xenforo", "phpbb", "vbulletin", "invision", "flarum", "nodebb", "mybb", "woltlab", "humhub",
}

var drawer = sync.OnceValue(func() *matcher { return newMatcher(previews) })

// DrawPreviews reports whether a program draws previews of links, by its User-Agent header. The header must be a
// program's: apps of people use some of the same words.
func DrawPreviews(header string) bool {
	return drawer().match(strings.ToLower(header))
}

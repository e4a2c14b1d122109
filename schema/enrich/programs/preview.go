package programs

import (
	"bytes"
	"slices"
)

// previews are parts of the User-Agent headers of programs that draw previews of links in chats and social networks.
// iMessage calls itself by Facebook's and Twitter's names, and Signal by WhatsApp's.
var previews = [][]byte{
	[]byte("facebookexternalhit"), []byte("Facebot"), []byte("meta-externalagent"), []byte("Twitterbot"),
	[]byte("LinkedInBot"),
	[]byte("Slackbot"), []byte("Slack-ImgProxy"), []byte("Discordbot"), []byte("WhatsApp/"), []byte("TelegramBot"),
	[]byte("Mastodon/"),
	[]byte("Pleroma "), []byte("Misskey/"), []byte("Bluesky"), []byte("SkypeUriPreview"), []byte("MicrosoftPreview"),
	[]byte("Teams"),
	[]byte("Pinterest"), []byte("redditbot"), []byte("Viber"), []byte("Line/"), []byte("Snap URL Preview"),
	[]byte("Snapchat"),
	[]byte("vkShare"), []byte("Embedly"), []byte("Iframely"), []byte("Synapse"), []byte("Mattermost"),
	[]byte("Rocket.Chat"),
	[]byte("Nextcloud"), []byte("Google-PageRenderer"), []byte("kakaotalk-scrap"), []byte("Zoom"), []byte("Tumblr/"),
	[]byte("XING-contenttabreceiver"),
}

// DrawPreviews reports whether a program draws previews of links, by its User-Agent header. The header must be a
// program's: apps of people use some of the same words.
func DrawPreviews(header []byte) bool {
	return slices.ContainsFunc(previews, func(part []byte) bool { return bytes.Contains(header, part) })
}

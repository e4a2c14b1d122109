package service

import (
	"log/slog"
	"regexp"
)

// hidden stands in logs for a secret.
const hidden = "…"

// secrets are the forms of secrets in any text. What precedes and follows the secret is in groups, and stays.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(\b(?:ls|whsec)_)[a-z0-9_+/=%-]+`), // tokens, secrets of webhooks
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\b[ :="]+)[^\s"]+`),
	regexp.MustCompile(`(?i)(\b(?:[a-z_]*token|[a-z_]*secret|password|passwd|api_?key)(?:=|%3d))[^&\s"]+`),
	regexp.MustCompile(`(://[^/\s:@]*:)[^/\s]+(@)`),
	regexp.MustCompile(`(?i)(/dashboard/shared/)[^\s"]+`),
}

// sharedPath is the rest of a path that may be the address of a shared report.
var sharedPath = regexp.MustCompile(`(?i)(/shared(?:/|%2f)+).+`)

// longWord is a word of a path in which any secret of the service may hide: all have at least 43 characters, and part
// of one is useless.
var longWord = regexp.MustCompile(`[A-Za-z0-9_~=+%-]{20,}`)

// Redact returns a text for logs without the secrets in it.
func Redact(text string) string {
	for _, form := range secrets {
		text = form.ReplaceAllString(text, "${1}"+hidden+"${2}")
	}
	return text
}

// RedactPath is Redact for the path of a request. It leaves out all long words: people paste secrets into paths that
// they misspell.
func RedactPath(path string) string {
	return longWord.ReplaceAllString(sharedPath.ReplaceAllString(Redact(path), "${1}"+hidden), hidden)
}

// redactAttr is Redact for an attribute of a line of the log.
func redactAttr(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(Redact(value))
	case error:
		a.Value = slog.StringValue(Redact(value.Error()))
	}
	return a
}

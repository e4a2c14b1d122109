package redirect

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Location returns a long URL as a Location header has to say it (RFC 3986): in visible ASCII. A host with other
// characters is written in its punycode form (UTS #46), every other byte outside visible ASCII percent-encoded.
// Nothing else is changed, escapes that are there already included.
func Location(longURL string) []byte {
	before, host, after := cutHost(longURL)
	location := make([]byte, 0, len(longURL)+16)
	location = appendEscaped(location, before)
	location = appendEscaped(location, asciiHost(host))
	return appendEscaped(location, after)
}

// cutHost cuts a URL into what stands before its host, the host, and what stands after it, from the port on.
func cutHost(longURL string) (before, host, after string) {
	start := strings.IndexAny(longURL, ":/?#")
	if start < 0 || !strings.HasPrefix(longURL[start:], "://") {
		return longURL, "", ""
	}
	start += len("://")
	end := len(longURL)
	if i := strings.IndexAny(longURL[start:], `/?#\`); i >= 0 { // browsers read a backslash as a slash
		end = start + i
	}
	start += strings.LastIndexByte(longURL[start:end], '@') + 1
	if i := strings.LastIndexByte(longURL[start:end], ':'); i >= 0 && !strings.Contains(longURL[start+i:end], "]") {
		end = start + i
	}
	return longURL[:start], longURL[start:end], longURL[end:]
}

// asciiHost returns the host in punycode. One that has no such form, or that would turn into something that is not a
// hostname, is returned as it is: percent-encoded, it is left to the browser to judge.
func asciiHost(host string) string {
	if isASCII(host) {
		return host
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil || !utf8.ValidString(host) || strings.ContainsFunc(ascii, notInHostname) {
		return host
	}
	return ascii
}

func notInHostname(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

package resolve

import (
	"strings"

	"linkstream/schema"
)

// appendLocation appends a long URL in the form that a Location header requires (RFC 3986): visible ASCII only. A host
// with other characters is converted to Punycode (UTS #46). Every other byte outside visible ASCII is percent-encoded.
// Nothing else changes; existing escapes stay.
func appendLocation(dst []byte, longURL string) []byte {
	before, host, after := cutHost(longURL)
	dst = appendEscaped(dst, before)
	if ascii, err := schema.HostToASCII(host); err == nil {
		host = ascii // otherwise it is percent-encoded, and the browser decides what to do with it
	}
	dst = appendEscaped(dst, host)
	return appendEscaped(dst, after)
}

// cutHost splits a URL into the part before its host, the host, and the rest, which begins with the port. If the URL
// has no host, all of it is before.
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
	host, _ = schema.CutPort(longURL[start:end])
	return longURL[:start], host, longURL[start+len(host):]
}

func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f {
			dst = append(dst, c)
		} else {
			dst = appendEscape(dst, c)
		}
	}
	return dst
}

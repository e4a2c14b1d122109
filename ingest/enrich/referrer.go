package enrich

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits of a hostname in characters of its ASCII form (RFC 1035).
const (
	maxHostLen  = 253
	maxLabelLen = 63
)

// referrerSchemes are those of pages and of Android's apps, which send their package's name as the host.
var referrerSchemes = [][]byte{[]byte("https://"), []byte("http://"), []byte("android-app://")}

// authority returns the part of a Referer header that has the host, as it stands there; empty if there is none. Sites
// are fewer than their pages, so it is what is remembered.
func authority(url []byte) []byte {
	for _, scheme := range referrerSchemes {
		if len(url) < len(scheme) || !bytes.EqualFold(url[:len(scheme)], scheme) {
			continue
		}
		rest := url[len(scheme):]
		for i, c := range rest {
			if c == '/' || c == '?' || c == '#' || c == '\\' { // browsers read a backslash as a slash
				return rest[:i]
			}
		}
		return rest
	}
	return nil
}

// hostOf returns the host of an authority in ASCII (UTS #46) and lower case, without port and without a leading "www.".
// "" if there is none, or an IP address. Where there is user information, which no browser sends (RFC 9110, section
// 10.1.3), there is no host that could be trusted.
func hostOf(authority string) string {
	host := authority
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		if !isDecimal(host[i+1:]) {
			return ""
		}
		host = host[:i]
	}
	// What is ASCII already is not for idna to judge: it refuses underscores and some hyphens that are in use.
	if !isASCII(host) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil || !utf8.ValidString(host) {
			return ""
		}
		host = ascii
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !isHostname(host) {
		return ""
	}
	return strings.TrimPrefix(host, "www.")
}

// isHostname tells a name in lower case from anything else. What ends in a number is an IPv4 address to browsers,
// however it is written.
func isHostname(host string) bool {
	if len(host) > maxHostLen {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return false
		}
		last = label
	}
	hex, isHex := strings.CutPrefix(last, "0x")
	return !isDecimal(last) && !(isHex && strings.Trim(hex, "0123456789abcdef") == "")
}

func isLabel(label string) bool {
	if len(label) == 0 || len(label) > maxLabelLen || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func isDecimal(s string) bool { return strings.Trim(s, "0123456789") == "" }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

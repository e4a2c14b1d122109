package shorten

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits of a hostname in characters of its ASCII form (RFC 1035).
const (
	maxHostLen  = 253
	maxLabelLen = 63
)

// canonicalHost returns the form that all spellings of a host share: its ASCII form (UTS #46) in lower case without the
// dot at the end, or the shortest form of an IP address. It reports whether host can be a host at all.
func canonicalHost(host string) (canonical string, ok bool) {
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		return addr.Unmap().String(), err == nil && addr.Zone() == ""
	}
	// What is ASCII already is not for idna to judge: it refuses underscores and some hyphens that are in use.
	if !isASCII(host) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", false
		}
		host = ascii
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if len(host) > maxHostLen {
		return "", false
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if !validLabel(label) {
			return "", false
		}
		last = label
	}
	// Browsers take a host that ends in a number for an IPv4 address however it is written, 2130706433 for 127.0.0.1:
	// only the form with four decimal numbers has one meaning.
	if isNumber(last) {
		addr, err := netip.ParseAddr(host)
		return addr.String(), err == nil
	}
	return host, true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func validLabel(label string) bool {
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

func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

package customdomain

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"linkstream/schema"
)

// hostname has two labels or more, each of 1 to 63 letters, digits and inner hyphens (RFC 1123, section 2.1). No
// top-level domain begins with a digit, but what browsers take for an IPv4 address does, however it is written.
var hostname = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// MaxHostLen is how many characters the ASCII form of a host has at most: the name of its TXT record, which is longer,
// may have 253 (RFC 1035, section 2.3.4).
const MaxHostLen = 253 - len(txtPrefix)

// maxGivenBytes bounds what is read of a host in whatever form: no character of four bytes stands for less than one of
// the ASCII form.
const maxGivenBytes = 4 * MaxHostLen

// ParseHost returns a hostname as domains have it: its ASCII form (UTS #46) in lower case, without the dot at the end.
// CodeInvalid if it is none, or an IP address, or a top-level domain itself.
func ParseHost(host string) (string, error) {
	given := host[:min(len(host), maxGivenBytes+1)]
	ascii, err := idna.Lookup.ToASCII(given)
	ascii = strings.TrimSuffix(ascii, ".")
	if err != nil || !utf8.ValidString(host) || len(host) > maxGivenBytes || len(ascii) > MaxHostLen ||
		!hostname.MatchString(ascii) {
		return "", schema.Errorf(schema.CodeInvalid, "%q is no hostname like go.example.com", given)
	}
	return ascii, nil
}

// UnicodeHost returns a host as its owner writes it, "" if that is how it is written anyway. Show it beside the ASCII
// form only: letters of several scripts look the same.
func UnicodeHost(host string) string {
	unicode, err := idna.Lookup.ToUnicode(host)
	if err != nil || unicode == host {
		return ""
	}
	return unicode
}

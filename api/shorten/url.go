package shorten

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"linkstream/schema"
)

// target is where a valid URL leads to.
type target struct {
	host schema.Host
	port string // as a decimal number, the scheme's own where the URL names none
}

// checkURL returns where a long URL leads to, or the rule that it breaks. The URL is never changed: its path and query
// mean what the target makes of them.
func checkURL(longURL string) (to target, problem string) {
	if longURL == "" {
		return target{}, "A long URL is required."
	}
	if utf8.RuneCountInString(longURL) > schema.MaxURLLen {
		return target{}, "The long URL must have at most 2048 characters."
	}
	if problem := checkCharacters(longURL); problem != "" {
		return target{}, problem
	}
	u, err := url.Parse(longURL)
	if err != nil {
		return target{}, "The long URL is not a valid URL."
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return target{}, "The long URL must begin with http:// or https://."
	}
	if u.User != nil {
		return target{}, "The long URL must not hold a user name or password."
	}
	if u.Hostname() == "" {
		return target{}, "The long URL must name a host."
	}
	host, err := schema.ParseHost(u.Hostname())
	if err != nil {
		return target{}, "The host of the long URL is not valid."
	}
	port, ok := effectivePort(u)
	if !ok {
		return target{}, "The port of the long URL must be 1 to 65535."
	}
	return target{host, port}, ""
}

func checkCharacters(s string) (problem string) {
	for _, r := range s {
		switch {
		case r == utf8.RuneError: // also stands for what a decoder could not read: the URL is not what was meant
			return "The long URL must be valid UTF-8."
		case unicode.IsControl(r) || unicode.IsSpace(r):
			return "The long URL must not hold white space or control characters."
		}
	}
	// url.Parse leaves the query alone, so the escapes are checked here.
	for rest := s; ; {
		_, after, found := strings.Cut(rest, "%")
		switch {
		case !found:
			return ""
		case len(after) < 2 || !isHex(after[0]) || !isHex(after[1]):
			return "The long URL holds a % that is not followed by two hexadecimal digits."
		}
		rest = after[2:]
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// effectivePort returns the port that a client connects to, and whether it is one.
func effectivePort(u *url.URL) (port string, ok bool) {
	switch {
	case u.Port() != "":
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		return strconv.FormatUint(n, 10), err == nil && n > 0
	case u.Scheme == "https":
		return "443", true
	}
	return "80", true
}

package links

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"linkstream/schema"
)

// target is the server that a long URL leads to.
type target struct {
	host schema.Host
	port string // as a decimal number; the default of the scheme if the URL has none
}

// parseTarget returns where a long URL leads, or the rule that it breaks. The URL is stored unchanged, because only its
// target knows what its path and query mean.
func parseTarget(longURL string) (to target, problem string) {
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
		return target{}, "The long URL must not contain a user name or password."
	}
	if u.Hostname() == "" {
		return target{}, "The long URL must have a host."
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
		case r == utf8.RuneError: // from invalid UTF-8 here, or put there by the JSON decoder
			return "The long URL must be valid UTF-8."
		case unicode.IsControl(r) || unicode.IsSpace(r):
			return "The long URL must not contain white space or control characters."
		}
	}
	// url.Parse does not check the escapes in the query.
	for rest := s; ; {
		_, after, found := strings.Cut(rest, "%")
		switch {
		case !found:
			return ""
		case len(after) < 2 || !isHex(after[0]) || !isHex(after[1]):
			return "The long URL contains a % that is not followed by two hexadecimal digits."
		}
		rest = after[2:]
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// effectivePort returns the port that a client connects to. ok is false if it is not a valid port.
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

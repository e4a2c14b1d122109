package enrich

import (
	"bytes"
	"strings"

	"linkstream/schema"
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

// hostOf returns the host of an authority without port and without a leading "www."; "" if it has none, or an IP address.
// An authority with user information, which no browser sends (RFC 9110, section 10.1.3), has no host: it is not to be
// trusted.
func hostOf(authority string) string {
	hostport, port := schema.CutPort(authority)
	host, err := schema.ParseHost(hostport)
	if err != nil || host.IsAddr() || strings.Trim(port, "0123456789") != "" {
		return ""
	}
	return strings.TrimPrefix(string(host), "www.")
}

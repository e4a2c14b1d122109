package enrich

import (
	"bytes"
	"strings"

	"golang.org/x/net/publicsuffix"

	"linkstream/schema"
)

// referrerSchemes are the schemes of pages and of Android apps, whose host is the app's package name.
var referrerSchemes = [][]byte{[]byte("https://"), []byte("http://"), []byte("android-app://")}

// authority returns the authority of a Referer header, unchanged, or nothing. The memo is keyed by it, because there
// are fewer sites than pages.
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

// referrerHost returns the host name of an authority, without the port and a leading "www."; "" if it is an IP address
// or not a host. An authority with user information, which no browser sends (RFC 9110, section 10.1.3), has no host.
// The owner of a site registers one name below a public suffix (https://publicsuffix.org): www.de and www.co.uk are
// such names, and keep their "www.".
func referrerHost(authority string) string {
	hostport, port := schema.CutPort(authority)
	host, err := schema.ParseHost(hostport)
	if err != nil || host.IsAddr() || strings.Trim(port, "0123456789") != "" {
		return ""
	}
	for name := string(host); ; {
		site, found := strings.CutPrefix(name, "www.")
		if suffix, _ := publicsuffix.PublicSuffix(site); !found || suffix == site {
			return name
		}
		name = site
	}
}

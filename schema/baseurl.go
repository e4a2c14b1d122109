package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// BaseURL is the public base of a service: http:// or https://, a host and perhaps a port. It is comparable. The zero
// BaseURL means that no URL is set. It is a flag's value by flag.TextVar.
type BaseURL struct {
	scheme string
	host   Host
	port   string // as a decimal number; "" if the URL names none
	text   string // the URL
}

// ParseBaseURL returns the base that s names. A slash may end it, but it has no other path, no query, fragment or user.
// The host is read by ParseHost, and a ValidDomain or an address; a port is 1 to 65535.
func ParseBaseURL(s string) (BaseURL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") || u.User != nil {
		return BaseURL{}, fmt.Errorf("%q is not http:// or https:// and a host, with an optional port", s)
	}
	host, err := ParseHost(u.Hostname())
	if err == nil && !host.IsAddr() && !host.ValidDomain() {
		err = errHostHyphen
	}
	if err != nil {
		return BaseURL{}, fmt.Errorf("host of %q: %w", s, err)
	}
	if u.Port() == "" {
		return newBaseURL(u.Scheme, host, ""), nil
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 {
		return BaseURL{}, fmt.Errorf("port of %q is not 1 to 65535", s)
	}
	return newBaseURL(u.Scheme, host, strconv.FormatUint(port, 10)), nil
}

// MustParseBaseURL is ParseBaseURL for constants: it panics if s is not a base.
func MustParseBaseURL(s string) BaseURL {
	base, err := ParseBaseURL(s)
	if err != nil {
		panic(err)
	}
	return base
}

func newBaseURL(scheme string, host Host, port string) BaseURL {
	text := scheme + "://" + host.inURL()
	if port != "" {
		text += ":" + port
	}
	return BaseURL{scheme, host, port, text}
}

// IsZero reports whether the base is not set.
func (b BaseURL) IsZero() bool { return b == BaseURL{} }

// Scheme returns "http" or "https".
func (b BaseURL) Scheme() string { return b.scheme }

// Host returns the host, without the port.
func (b BaseURL) Host() Host { return b.host }

// Port returns the port as a decimal number, "" if the URL names none.
func (b BaseURL) Port() string { return b.port }

// String returns the URL, its host in canonical form, without a slash at the end.
func (b BaseURL) String() string { return b.text }

// SameOrigin reports whether a browser takes pages of both bases for pages of one origin (RFC 6454, section 5).
func (b BaseURL) SameOrigin(other BaseURL) bool {
	return b.scheme == other.scheme && b.host == other.host && b.effectivePort() == other.effectivePort()
}

func (b BaseURL) effectivePort() string {
	switch {
	case b.port != "":
		return b.port
	case b.scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// ShortURL returns the address at which the service with this base answers link. On a custom domain that is the base's
// scheme and the domain's host, without a port.
func (b BaseURL) ShortURL(link Link) string {
	if link.DomainID != 0 {
		return b.scheme + "://" + link.Host + "/" + link.Hash
	}
	return b.text + "/" + link.Hash
}

// MarshalText returns String as bytes.
func (b BaseURL) MarshalText() ([]byte, error) { return []byte(b.text), nil }

// UnmarshalText is ParseBaseURL, but an empty text is the zero BaseURL. After an error b is as it was.
func (b *BaseURL) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*b = BaseURL{}
		return nil
	}
	parsed, err := ParseBaseURL(string(text))
	if err == nil {
		*b = parsed
	}
	return err
}

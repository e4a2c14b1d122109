// Package clientaddr determines the address of a client behind trusted proxies.
package clientaddr

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// Proxies are the addresses of the trusted proxies in front of a service. It implements flag.Value.
type Proxies []netip.Prefix

// Set replaces the proxies by list, which has addresses and CIDR blocks separated by commas. The error names each
// invalid field; the proxies are then unchanged.
func (p *Proxies) Set(list string) error {
	var proxies Proxies
	var errs []error
	for field := range strings.SplitSeq(list, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		prefix, err := parsePrefix(field)
		proxies, errs = append(proxies, prefix), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	*p = proxies
	return nil
}

// String returns the proxies as a list for Set.
func (p *Proxies) String() string {
	var list []string
	for _, prefix := range *p {
		list = append(list, prefix.String())
	}
	return strings.Join(list, ",")
}

func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("%q is not an address", s)
		}
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil || prefix.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR block", s)
	}
	return prefix.Masked(), nil
}

// Contain reports whether addr, which is not IPv4 in IPv6, is that of a proxy.
func (p Proxies) Contain(addr netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// Client returns the address of the client that sent a request. peer is the other end of the connection. If peer is not
// a proxy, it is the client. Otherwise the client is the rightmost address in X-Forwarded-For that is not a proxy: each
// proxy appends the address that it was called from, so everything to the left of the client may be forged. If all
// addresses are proxies, Client returns the leftmost one. Fields that are not addresses are skipped: empty ones, words
// such as "unknown" (Squid), and obfuscated identifiers (RFC 7239, section 6.3).
//
// Client does not allocate, and does not retain header.
func (p Proxies) Client(peer netip.Addr, header *fasthttp.RequestHeader) netip.Addr {
	client := peer.Unmap()
	if !p.Contain(client) {
		return client
	}
	lines := header.PeekAll(fasthttp.HeaderXForwardedFor)
	for i := len(lines) - 1; i >= 0; i-- {
		for line := lines[i]; len(line) > 0; {
			comma := bytes.LastIndexByte(line, ',')
			if addr := parseForwarded(line[comma+1:]); addr.IsValid() {
				client = addr
				if !p.Contain(client) {
					return client
				}
			}
			line = line[:max(comma, 0)]
		}
	}
	return client
}

// parseForwarded parses an address as proxies write it: 192.0.2.1, 192.0.2.1:80, 2001:db8::1 or [2001:db8::1]:80, also
// in quotation marks. It ignores a zone. It returns the zero Addr for anything else.
func parseForwarded(field []byte) netip.Addr {
	field = bytes.Trim(field, " \t\"")
	if len(field) > 0 && field[0] == '[' {
		field, _, _ = bytes.Cut(field[1:], []byte("]"))
	} else if bytes.Count(field, []byte(":")) == 1 {
		field, _, _ = bytes.Cut(field, []byte(":"))
	}
	field, _, _ = bytes.Cut(field, []byte("%"))
	// The string aliases the header, to save an allocation. netip retains only zones, and field has none.
	addr, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(field), len(field)))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap()
}

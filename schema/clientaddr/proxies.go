// Package clientaddr finds the address of a client behind trusted proxies.
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

// Proxies are the addresses of the proxies in front of the service. It is a flag.Value.
type Proxies []netip.Prefix

// Set replaces the proxies with a list of addresses and CIDR blocks separated by commas.
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

// String returns the list that Set takes.
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

func (p Proxies) contain(addr netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// Client returns the address that a request of the peer came from: the peer's, unless it is a proxy. Then it is the
// right-most address of X-Forwarded-For that is not a proxy's: a proxy appends the address it was called from, so
// that what stands further left is the client's own word. If all are proxies it is the left-most; if the address
// cannot be read, the zero Addr.
func (p Proxies) Client(peer netip.Addr, header *fasthttp.RequestHeader) netip.Addr {
	client := peer.Unmap()
	if !p.contain(client) {
		return client
	}
	lines := header.PeekAll(fasthttp.HeaderXForwardedFor)
	for i := len(lines) - 1; i >= 0; i-- {
		for line := lines[i]; len(line) > 0; {
			comma := bytes.LastIndexByte(line, ',')
			client = parseForwarded(line[comma+1:])
			if !p.contain(client) {
				return client
			}
			line = line[:max(comma, 0)]
		}
	}
	return client
}

// parseForwarded reads an address as proxies write it: 192.0.2.1, 192.0.2.1:80, 2001:db8::1 or [2001:db8::1]:80, with
// a zone or without. It returns the zero Addr for anything else.
func parseForwarded(field []byte) netip.Addr {
	field = bytes.TrimSpace(field)
	if len(field) > 0 && field[0] == '[' {
		field, _, _ = bytes.Cut(field[1:], []byte("]"))
	} else if bytes.Count(field, []byte(":")) == 1 {
		field, _, _ = bytes.Cut(field, []byte(":"))
	}
	field, _, _ = bytes.Cut(field, []byte("%"))
	// A string that shares the header's bytes saves an allocation; netip keeps nothing of an address without a zone.
	addr, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(field), len(field)))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap()
}

package webhook

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
)

// Networks are blocks of addresses that may be called though they are not public, also by http. They are the flag
// -api.webhook-allow.
type Networks []netip.Prefix

var _ flag.Value = (*Networks)(nil)

// Set parses CIDR blocks that are separated by commas.
func (n *Networks) Set(s string) error {
	*n = nil
	for field := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		prefix, err := netip.ParsePrefix(field)
		if err != nil {
			return fmt.Errorf("%q is not a CIDR block", field)
		}
		*n = append(*n, prefix.Masked())
	}
	return nil
}

func (n *Networks) String() string {
	var blocks []string
	for _, prefix := range *n {
		blocks = append(blocks, prefix.String())
	}
	return strings.Join(blocks, ",")
}

func (n Networks) contain(addr netip.Addr) bool {
	return slices.ContainsFunc(n, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// special are blocks that are not for the public (IANA's registries of special-purpose addresses), in addition to
// netip's.
var special = func() (all Networks) {
	if err := all.Set(
		"0.0.0.0/8,100.64.0.0/10,192.0.0.0/24,192.0.2.0/24,192.88.99.0/24,198.18.0.0/15,198.51.100.0/24,203.0.113.0/24," +
			"240.0.0.0/4,64:ff9b:1::/48,2001::/23,2001:db8::/32,3fff::/20"); err != nil {
		panic(err)
	}
	return all
}()

var (
	errNotPublic = errors.New("the address of the receiver is not public")
	errOwn       = errors.New("the address of the receiver is one of this service")
	errPlain     = errors.New("http is for receivers in networks that the operator allows")
	globalIPv6   = netip.MustParsePrefix("2000::/3")
	nat64        = netip.MustParsePrefix("64:ff9b::/96")
)

// plainAddr returns the IPv4 address that an IPv6 address stands for, or addr itself: see schema.ParseHost.
func plainAddr(addr netip.Addr) netip.Addr {
	host, err := schema.ParseHost(addr.WithZone("").String())
	if err != nil {
		return netip.Addr{}
	}
	return host.Addr()
}

// isPublic reports whether packets to an address reach the Internet.
func isPublic(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	if addr.Is6() && !nat64.Contains(addr) && !globalIPv6.Contains(addr) || special.contain(addr) {
		return false
	}
	addr = plainAddr(addr)
	return addr.IsValid() && addr.IsGlobalUnicast() && !addr.IsPrivate() && !special.contain(addr)
}

// dialer decides which addresses a sender connects to.
type dialer struct {
	allow  Networks
	own    *ownAddresses
	secure bool // for https
}

// check returns nil if the dialer may connect to an address. The operator allows receivers in networks, not this
// service, which is therefore refused before.
func (d *dialer) check(to netip.AddrPort) error {
	addr := to.Addr().WithZone("").Unmap()
	switch plain := plainAddr(addr); {
	case d.own.contain(plain, to.Port()):
		return errOwn
	case d.allow.contain(addr) || plain.IsValid() && d.allow.contain(plain):
		return nil
	case !d.secure:
		return errPlain
	case !isPublic(addr):
		return errNotPublic
	case d.own.contain(plain, anyPort):
		return errOwn
	}
	return nil
}

// control is called with the address of each connection before it is opened, whichever of its answers the resolver has
// put first.
func (d *dialer) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return d.check(to)
}

// newTransport returns a transport that connects to addresses that the dialer permits.
func newTransport(d *dialer) *http.Transport {
	connect := net.Dialer{Timeout: connectTimeout, Control: d.control}
	return &http.Transport{
		DialContext: connect.DialContext, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: answerTimeout,
		MaxResponseHeaderBytes: 16 << 10, MaxIdleConns: maxSending, MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second,
		DisableCompression: true,
	}
}

// ownAddresses finds the addresses of the service. Names may get others, so they are looked up every minute. While the
// resolver does not answer, a name keeps the addresses that it had.
type ownAddresses struct {
	all   []links.Address
	mu    sync.Mutex
	found map[schema.Host][]netip.Addr
	until time.Time // the next look-up
}

// anyPort stands for every port.
const anyPort = 0

// contain reports whether an address and port is the service's. On this machine, the ports of all its addresses are: a
// listener may be reached at other addresses of the machine than its own, and a proxy may stand before it.
func (o *ownAddresses) contain(addr netip.Addr, port uint16) bool {
	here := addr.IsValid() && (schema.Host(addr.String()).IsLocal() || links.OfThisMachine(addr))
	return here && port == anyPort || slices.ContainsFunc(o.all, func(a links.Address) bool {
		return here && port == a.Port() || o.isOf(a, port) && slices.Contains(o.addrs(a.Host()), addr)
	})
}

// isOf reports whether a port is one of an address of the service.
func (o *ownAddresses) isOf(a links.Address, port uint16) bool {
	return port == anyPort || a.Port() == anyPort || a.Port() == port
}

// name reports whether a host and port is one of the service's by its name.
func (o *ownAddresses) name(host schema.Host, port uint16) bool {
	return slices.ContainsFunc(o.all, func(a links.Address) bool { return a.Host() == host && o.isOf(a, port) })
}

// addrs returns the addresses of a host of the service, none for "".
func (o *ownAddresses) addrs(host schema.Host) []netip.Addr {
	switch {
	case host == "":
		return nil
	case host.IsAddr():
		return []netip.Addr{host.Addr()}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); now.After(o.until) {
		o.lookUp()
		o.until = now.Add(time.Minute)
	}
	return o.found[host]
}

func (o *ownAddresses) lookUp() {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout/2)
	defer cancel()
	for _, a := range o.all {
		if a.Host() == "" || a.Host().IsAddr() {
			continue
		}
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", string(a.Host()))
		if unknown := new(net.DNSError); err != nil && !(errors.As(err, &unknown) && unknown.IsNotFound) {
			continue
		}
		o.found[a.Host()] = nil
		for _, addr := range addrs {
			o.found[a.Host()] = append(o.found[a.Host()], plainAddr(addr))
		}
	}
}

// CheckURL returns the rule that the URL of a webhook breaks, "" if none. It does not look up a name, whose addresses
// are checked when it is called.
func (s *Sender) CheckURL(text string) (problem string) {
	u, err := url.Parse(text)
	switch {
	case len(text) > schema.MaxURLLen:
		return "The URL must have at most 2048 characters."
	case err != nil || u.Host == "" || u.Fragment != "" ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "The URL is not a valid URL of a receiver."
	case u.User != nil:
		return "The URL must not contain a user name or password."
	case u.Scheme != "https" && (u.Scheme != "http" || len(s.plain.allow) == 0):
		return "The URL must begin with https://."
	}
	host, err := schema.ParseHost(u.Hostname())
	if err != nil {
		return "The host of the URL is not valid."
	}
	d, port := s.secure, cmp.Or(u.Port(), "443")
	if u.Scheme == "http" {
		d, port = s.plain, cmp.Or(u.Port(), "80")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "The port of the URL is not valid."
	}
	to := netip.AddrPortFrom(host.Addr(), uint16(n))
	closed := len(d.allow) == 0
	if to.IsValid() && d.check(to) != nil || closed && (host.IsLocal() || s.own.name(host, anyPort)) ||
		s.own.name(host, to.Port()) {
		return "The URL must lead to a public address that is not one of this service."
	}
	return ""
}

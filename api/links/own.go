package links

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"linkstream/schema"
)

// Address is where clients reach this service: a host, and a port of it.
type Address struct {
	host schema.Host // "": every address of this machine
	port string      // as a decimal number; "": every port
}

// ParseAddress returns the address that s names: a host, host:port, or :port. A host that is an unspecified address, as
// in addresses to listen on, stands for every address of this machine.
func ParseAddress(s string) (Address, error) {
	name, port := schema.CutPort(s)
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return Address{}, fmt.Errorf("port of %q is not 1 to 65535", s)
		}
	}
	if name == "" && port != "" {
		return Address{port: port}, nil
	}
	host, err := schema.ParseHost(name)
	switch addr := host.Addr(); {
	case err != nil:
		return Address{}, fmt.Errorf("host of %q: %w", s, err)
	case addr.IsUnspecified() && port == "":
		return Address{}, errors.New("an unspecified address needs a port")
	case addr.IsUnspecified():
		return Address{port: port}, nil
	}
	return Address{host, port}, nil
}

// ParseAddresses is ParseAddress for some, without those that are empty.
func ParseAddresses(some ...string) (all []Address, err error) {
	for _, s := range some {
		if s == "" {
			continue
		}
		address, err := ParseAddress(s)
		if err != nil {
			return nil, err
		}
		all = append(all, address)
	}
	return all, nil
}

// Host returns the host, "" for every address of this machine.
func (a Address) Host() schema.Host { return a.host }

// Port returns the port, 0 for every port.
func (a Address) Port() uint16 {
	n, _ := strconv.ParseUint(a.port, 10, 16)
	return uint16(n)
}

// AddressesOf returns where clients reach a public base: without a port, at the ports of http and https.
func AddressesOf(base schema.BaseURL) []Address {
	if base.Port() != "" {
		return []Address{AddressOf(base)}
	}
	return []Address{{base.Host(), "80"}, {base.Host(), "443"}}
}

// AddressOf returns the address of a public base. Without a port it stands for all ports of its host.
func AddressOf(base schema.BaseURL) Address { return Address{base.Host(), base.Port()} }

// IP returns the host if it is an IP address; the zero Addr otherwise.
func (a Address) IP() netip.Addr { return a.host.Addr() }

// ownAddresses are the addresses of this service.
type ownAddresses []Address

// contain reports whether a client that follows a link to the target reaches this service again, or another program on
// its own machine. Such links could form a loop.
func (own ownAddresses) contain(to target) bool {
	if to.host.IsLocal() {
		return true
	}
	for _, a := range own {
		if a.host == to.host && (a.port == "" || own.listenOn(to.port)) {
			return true
		}
	}
	addr := to.host.Addr()
	return addr.IsValid() && own.usePort(to.port) && OfThisMachine(addr)
}

// listenOn reports whether an address of the service has the port.
func (own ownAddresses) listenOn(port string) bool {
	return slices.ContainsFunc(own, func(a Address) bool { return a.port == port })
}

// usePort reports whether a port is the service's.
func (own ownAddresses) usePort(port string) bool {
	return own.listenOn(port) || own.listenOn("") && (port == "80" || port == "443")
}

// OfThisMachine reports whether a network interface has the address. Interfaces may change while a program runs, and
// few links lead to addresses, so each time it asks the system.
func OfThisMachine(addr netip.Addr) bool {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, i := range interfaces {
		if network, ok := i.(*net.IPNet); ok {
			if own, ok := netip.AddrFromSlice(network.IP); ok && own.Unmap() == addr {
				return true
			}
		}
	}
	return false
}

package fair

import (
	"encoding/binary"
	"net/netip"
)

// Network is the part of an address that tells clients apart: an IPv4 address, or the first 64 bits of an IPv6 address at most. The two
// do not meet, since no IPv6 network in use begins with 32 zero bits. IPv4 in IPv6 is IPv4, and all invalid addresses are one network.
type Network uint64

// Subnet returns the IPv4 address or the IPv6 /64. Whoever has an address in a /64 has all of them.
func Subnet(addr netip.Addr) Network {
	b := addr.As16()
	if addr.Unmap().Is4() {
		return Network(binary.BigEndian.Uint32(b[12:]))
	}
	return Network(binary.BigEndian.Uint64(b[:]))
}

// Site returns the IPv4 address or the IPv6 /48, the most that providers assign to one customer (RFC 6177).
func Site(addr netip.Addr) Network {
	n := Subnet(addr)
	if addr.Unmap().Is6() {
		n &^= 1<<16 - 1
	}
	return n
}

// String returns the IPv4 address, or the first address of the IPv6 network.
func (n Network) String() string {
	var b [16]byte
	if n>>32 == 0 {
		binary.BigEndian.PutUint32(b[:], uint32(n))
		return netip.AddrFrom4([4]byte(b[:4])).String()
	}
	binary.BigEndian.PutUint64(b[:], uint64(n))
	return netip.AddrFrom16(b).String()
}

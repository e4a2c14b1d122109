package turns

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// Client is an account, the readers of an account's shared reports, a credential, a network, or a link or shared report
// that takes turns with others. No two kinds are ever the same client. The zero Client is the service itself: it takes
// turns like others, and has no bound of its own.
type Client struct {
	kind kind
	id   uint64
}

type kind uint8

const (
	service kind = iota
	account
	readers
	credential
	network
	item
	part
	others // all clients that a Bucket has no room for
)

// Account returns the client of an account.
func Account(id int64) Client { return Client{account, uint64(id)} }

// Readers returns the client of all readers of an account's shared reports, who are not the account.
func Readers(accountID int64) Client { return Client{readers, uint64(accountID)} }

// Credential returns the client of a token's, session's or share's SHA-256, of which 64 bits are kept.
func Credential(digest [32]byte) Client {
	return Client{credential, binary.BigEndian.Uint64(digest[:])}
}

// Item returns the client of a link or of a shared report.
func Item(id int64) Client { return Client{item, uint64(id)} }

// Of returns the client that c is to another one, such as a network among the readers of a shared report.
func (c Client) Of(other Client) Client {
	var b [18]byte
	b[0], b[1] = byte(c.kind), byte(other.kind)
	binary.BigEndian.PutUint64(b[2:], c.id)
	binary.BigEndian.PutUint64(b[10:], other.id)
	digest := sha256.Sum256(b[:])
	return Client{part, binary.BigEndian.Uint64(digest[:])}
}

// Subnet returns the client of an IPv4 address or an IPv6 /64: who has an address in a /64 has all of them. IPv4 in
// IPv6 is IPv4, and all invalid addresses are one client. IPv4 and IPv6 do not meet: no IPv6 network in use begins
// with 32 zero bits.
func Subnet(addr netip.Addr) Client {
	b := addr.As16()
	if addr.Unmap().Is4() {
		return Client{network, uint64(binary.BigEndian.Uint32(b[12:]))}
	}
	return Client{network, binary.BigEndian.Uint64(b[:])}
}

// Site is Subnet for an IPv6 /48, the most that providers assign to one customer (RFC 6177).
func Site(addr netip.Addr) Client {
	c := Subnet(addr)
	if addr.Unmap().Is6() {
		c.id &^= 1<<16 - 1
	}
	return c
}

// String returns the IPv4 address, or the first address of the IPv6 network.
func (c Client) String() string {
	var b [16]byte
	if c.id>>32 == 0 {
		binary.BigEndian.PutUint32(b[:], uint32(c.id))
		return netip.AddrFrom4([4]byte(b[:4])).String()
	}
	binary.BigEndian.PutUint64(b[:], c.id)
	return netip.AddrFrom16(b).String()
}

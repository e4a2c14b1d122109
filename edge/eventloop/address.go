package eventloop

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// addresses counts the connections of each client address, so that one client cannot take them all. A client with IPv6 has a
// whole /64 for itself, which counts as one address.
type addresses struct {
	max    int // 0: nothing is counted
	exempt func(netip.Addr) bool
	shards [64]addressShard
}

type addressShard struct {
	mu   sync.Mutex
	open map[uint64]int
	_    [48]byte // keeps the next shard out of this one's cache line
}

func newAddresses(maxPerAddress int, exempt func(netip.Addr) bool) *addresses {
	a := &addresses{max: maxPerAddress, exempt: exempt}
	for i := range a.shards {
		a.shards[i].open = map[uint64]int{}
	}
	return a
}

// enter counts a connection of addr unless it is one too many. counted says that leave must be called when it is closed.
func (a *addresses) enter(addr netip.Addr) (counted, ok bool) { return a.enterAs(addr, addr) }

// enterAs is enter for what is counted by network instead of address. leave must be called with network.
func (a *addresses) enterAs(addr, network netip.Addr) (counted, ok bool) {
	if a.max == 0 || a.exempt != nil && a.exempt(addr) {
		return false, true
	}
	key := addressKey(network)
	s := a.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.open[key]
	if n >= a.max {
		return false, false
	}
	s.open[key] = n + 1
	return true, true
}

func (a *addresses) leave(addr netip.Addr) {
	key := addressKey(addr)
	s := a.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.open[key]; n > 1 {
		s.open[key] = n - 1
	} else {
		delete(s.open, key)
	}
}

func (a *addresses) shard(key uint64) *addressShard {
	const spread = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio (Knuth, vol. 3, 6.4): near keys get far shards
	return &a.shards[key*spread>>58]
}

// addressKey is an IPv4 address, or the first half of an IPv6 address: the two do not meet, as no /64 in use begins with zeros.
func addressKey(addr netip.Addr) uint64 {
	b := addr.As16()
	if addr.Is4() || addr.Is4In6() {
		return uint64(binary.BigEndian.Uint32(b[12:]))
	}
	return binary.BigEndian.Uint64(b[:])
}

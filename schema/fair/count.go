package fair

import (
	"net/netip"
	"sync"
)

// Count bounds how many things, such as connections, each network has at the same time.
type Count struct {
	max     int
	network func(netip.Addr) Network
	exempt  func(netip.Addr) bool
	shards  [64]countShard
}

type countShard struct {
	mu   sync.Mutex
	open map[Network]int
	_    [48]byte // keeps the next shard out of this one's cache line
}

// NewCount returns a Count that lets each network, Subnet or Site of an address, have max things; 0: any number. Addresses that
// exempt reports are not counted; nil: all are.
func NewCount(max int, network func(netip.Addr) Network, exempt func(netip.Addr) bool) *Count {
	c := &Count{max: max, network: network, exempt: exempt}
	for i := range c.shards {
		c.shards[i].open = map[Network]int{}
	}
	return c
}

// Enter counts one thing of addr. ok is false if its network has max already. If counted is true, Leave must follow.
func (c *Count) Enter(addr netip.Addr) (counted, ok bool) {
	if c.max == 0 || c.exempt != nil && c.exempt(addr) {
		return false, true
	}
	n := c.network(addr)
	s := c.shard(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[n] >= c.max {
		return false, false
	}
	s.open[n]++
	return true, true
}

// Leave ends the counting of one thing of addr.
func (c *Count) Leave(addr netip.Addr) {
	n := c.network(addr)
	s := c.shard(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[n]--; s.open[n] == 0 {
		delete(s.open, n)
	}
}

func (c *Count) shard(n Network) *countShard {
	const spread = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio (Knuth, vol. 3, 6.4): near networks get far shards
	return &c.shards[n*spread>>58]
}

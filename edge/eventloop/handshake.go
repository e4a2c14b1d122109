package eventloop

import (
	chain "container/list"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

// A handshake costs the server a hundred times as much as a redirect, and its client next to nothing. So handshakes are bounded:
//
//   - Config.MaxHandshakes are under way. A further one takes the place of the one that began first.
//   - Config.MaxHandshakesPerAddress of them belong to one network. A further one is refused.
//   - They compute on Config.HandshakeCPUs, one network after the other (turns): a flood leaves the other CPUs to redirects, and
//     visitors wait for one handshake of each network that floods.
//   - Config.ReadTimeout ends them.
type handshakes struct {
	turns    turns
	max      int
	networks *addresses // with handshakes under way

	mu       sync.Mutex
	underWay chain.List // of *secureConn, the one that began first in front

	refusedFull, refusedAddress *metrics.Counter
}

func newHandshakes(cfg Config, set *metrics.Set) *handshakes {
	const refused = "linkstream_edge_tls_handshakes_refused_total"
	service.Describe(set, refused, "TLS handshakes that were ended for the sake of others, by the limit: full or address.")
	h := &handshakes{
		turns: turns{free: cfg.handshakeCPUs()}, max: cfg.MaxHandshakes, networks: newAddresses(cfg.MaxHandshakesPerAddress, cfg.Exempt),
		refusedFull: set.NewCounter(refused + `{reason="full"}`), refusedAddress: set.NewCounter(refused + `{reason="address"}`),
	}
	const waiting = "linkstream_edge_tls_handshakes_waiting"
	service.Describe(set, waiting, "TLS handshakes that wait for a CPU.")
	set.NewGauge(waiting, func() float64 { return float64(h.turns.count()) })
	return h
}

var errManyHandshakes = errors.New("its network has too many TLS handshakes under way")

// begin admits the handshake of a connection, whose network must leave when it has ended, if that is counted.
func (h *handshakes) begin(c *secureConn, addr netip.Addr) (counted bool, err error) {
	network := networkOf(addr)
	counted, ok := h.networks.enterAs(addr, network)
	if !ok {
		h.refusedAddress.Inc()
		return false, errManyHandshakes
	}
	c.shaking.begin(&h.turns, addressKey(network))
	h.mu.Lock()
	defer h.mu.Unlock()
	c.underWay = h.underWay.PushBack(c)
	if h.underWay.Len() <= h.max {
		return counted, nil
	}
	first := h.underWay.Remove(h.underWay.Front()).(*secureConn)
	first.underWay = nil
	_ = first.NetConn().Close() // its goroutine notices
	h.refusedFull.Inc()
	return counted, nil
}

// end is called when the handshake of a connection is over.
func (h *handshakes) end(c *secureConn, addr netip.Addr, counted bool) {
	c.shaking.end()
	if counted {
		h.networks.leave(networkOf(addr))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.underWay != nil {
		h.underWay.Remove(c.underWay)
		c.underWay = nil
	}
}

// networkOf returns the IPv4 address, or the /48 of an IPv6 address, which is what one client can have.
func networkOf(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap(); !addr.Is6() {
		return addr
	}
	b := addr.As16()
	clear(b[6:])
	return netip.AddrFrom16(b)
}

// turns are places to compute, given to one network after the other.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting map[uint64]*chain.List // of chan struct{}, by network
	order   chain.List             // of networks that wait, the next one in front
}

// count returns how many wait.
func (t *turns) count() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.waiting {
		n += line.Len()
	}
	return n
}

// take waits for a place. ready has room for one element.
func (t *turns) take(network uint64, ready chan struct{}) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return
	}
	if t.waiting == nil {
		t.waiting = map[uint64]*chain.List{}
	}
	line := t.waiting[network]
	if line == nil {
		line = chain.New()
		t.waiting[network] = line
		t.order.PushBack(network)
	}
	line.PushBack(ready)
	t.mu.Unlock()
	<-ready
}

// give gives a place back, or to the next network.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.order.Front()
	if next == nil {
		t.free++
		return
	}
	network := t.order.Remove(next).(uint64)
	line := t.waiting[network]
	ready := line.Remove(line.Front()).(chan struct{})
	if line.Len() > 0 {
		t.order.PushBack(network)
	} else {
		delete(t.waiting, network)
	}
	ready <- struct{}{}
}

// shakingConn lets crypto/tls compute in turns while it shakes hands: it has a turn from when bytes of the client have come until
// it reads the next ones. Only the goroutine that shakes hands reads meanwhile.
type shakingConn struct {
	net.Conn
	turns   *turns // nil before and after the handshake
	network uint64
	ready   chan struct{}
	inTurn  bool
	ahead   *readAhead // nil once it has been read
	readBy  time.Time  // zero: any time
}

// readAhead is what has been read at once: crypto/tls would read the header of a record and its rest separately.
type readAhead struct {
	buf        [4 << 10]byte
	begin, end int
}

var readAheads = sync.Pool{New: func() any { return new(readAhead) }}

func (c *shakingConn) begin(t *turns, network uint64) {
	c.turns, c.network = t, network
	c.ahead = readAheads.Get().(*readAhead)
	c.ahead.begin, c.ahead.end = 0, 0
}

func (c *shakingConn) end() {
	c.leave()
	c.turns = nil
	if c.ahead != nil && c.ahead.begin == c.ahead.end {
		c.release()
	}
}

func (c *shakingConn) release() {
	readAheads.Put(c.ahead)
	c.ahead = nil
}

func (c *shakingConn) enter() {
	if c.ready == nil {
		c.ready = make(chan struct{}, 1)
	}
	c.turns.take(c.network, c.ready)
	c.inTurn = true
}

func (c *shakingConn) leave() {
	if c.inTurn {
		c.inTurn = false
		c.turns.give()
	}
}

// Idle runs f, which waits for something else than the client, without a turn.
func (c *shakingConn) Idle(f func()) {
	if !c.inTurn {
		f()
		return
	}
	c.leave()
	defer c.enter()
	f()
}

// Read reads what the client has sent.
func (c *shakingConn) Read(p []byte) (int, error) {
	a := c.ahead
	if a == nil {
		return c.Conn.Read(p)
	}
	if a.begin == a.end {
		if c.turns == nil {
			c.release()
			return c.Conn.Read(p)
		}
		c.leave()
		n, err := c.Conn.Read(a.buf[:])
		if n <= 0 {
			return 0, err
		}
		a.begin, a.end = 0, n
		c.enter()
		if !c.readBy.IsZero() && time.Now().After(c.readBy) { // the client has gone while it waited for its turn
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(p, a.buf[a.begin:a.end])
	a.begin += n
	return n, nil
}

// SetReadDeadline implements net.Conn.
func (c *shakingConn) SetReadDeadline(t time.Time) error {
	c.readBy = t
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *shakingConn) SetDeadline(t time.Time) error {
	c.readBy = t
	return c.Conn.SetDeadline(t)
}

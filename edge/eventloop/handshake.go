package eventloop

import (
	chain "container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
	"linkstream/schema/turns"
)

// A handshake costs the server a hundred times as much as a redirect, and its client next to nothing. So handshakes
// are bounded:
//
//   - At most Config.MaxHandshakes are under way. One more ends the handshake that began first.
//   - At most Config.MaxHandshakesPerAddress of them belong to one network. One more is refused.
//   - They compute on Config.HandshakeCPUs, and networks take turns. A flood leaves the other CPUs to redirects, and a
//     visitor waits for one handshake of each network that floods.
//   - Config.ReadTimeout ends them.
type handshakes struct {
	turns    *turns.Turns
	max      int
	networks *turns.Bound // handshakes under way
	exempt   func(netip.Addr) bool

	mu       sync.Mutex
	underWay chain.List // of *secureConn, in the order in which they began

	refusedFull, refusedAddress *metrics.Counter
}

func newHandshakes(cfg Config, set *metrics.Set) *handshakes {
	const refused = "linkstream_edge_tls_handshakes_refused_total"
	service.Describe(set, refused, "TLS handshakes that were ended for the sake of others, by the limit: full or address.")
	h := &handshakes{
		turns: turns.New(turns.Limits{Places: cfg.handshakeCPUs()}), max: cfg.MaxHandshakes,
		networks:       turns.NewBound(0, cfg.MaxHandshakesPerAddress),
		exempt:         cfg.Exempt,
		refusedFull:    set.NewCounter(refused + `{reason="full"}`),
		refusedAddress: set.NewCounter(refused + `{reason="address"}`),
	}
	service.NewGauge(set, "linkstream_edge_tls_handshakes_waiting", "TLS handshakes that wait for a CPU.",
		func() float64 { return float64(h.turns.Waiting()) })
	return h
}

var errManyHandshakes = errors.New("its network has too many TLS handshakes under way")

// begin admits the handshake of a connection from addr. end must follow with the client that it returns.
func (h *handshakes) begin(c *secureConn, addr netip.Addr) (client turns.Client, err error) {
	if h.exempt == nil || !h.exempt(addr) {
		client = turns.Site(addr)
	}
	if h.networks.Take(client, 1) != nil {
		h.refusedAddress.Inc()
		return client, errManyHandshakes
	}
	c.shaking.begin(h.turns, turns.Site(addr))
	h.mu.Lock()
	defer h.mu.Unlock()
	c.underWay = h.underWay.PushBack(c)
	if h.underWay.Len() <= h.max {
		return client, nil
	}
	first := h.underWay.Remove(h.underWay.Front()).(*secureConn)
	first.underWay = nil
	_ = first.socket.Close() // ends its goroutine
	h.refusedFull.Inc()
	return client, nil
}

// end is called when the handshake of a connection is over.
func (h *handshakes) end(c *secureConn, client turns.Client) {
	c.shaking.end()
	h.networks.Leave(client, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.underWay != nil {
		h.underWay.Remove(c.underWay)
		c.underWay = nil
	}
}

// shakingConn makes crypto/tls compute in turns during a handshake: it has a turn from the arrival of bytes until
// the next read. During the handshake only its goroutine reads.
type shakingConn struct {
	net.Conn
	turns   *turns.Turns // nil before and after the handshake
	network turns.Client
	inTurn  bool
	ahead   *readAhead // nil once it has been read
	readBy  time.Time  // zero: any time
}

// readAhead buffers one read of the kernel: crypto/tls reads the header of a record and its rest separately.
type readAhead struct {
	buf        [4 << 10]byte
	begin, end int
}

var readAheads = sync.Pool{New: func() any { return new(readAhead) }}

func (c *shakingConn) begin(t *turns.Turns, network turns.Client) {
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
	_ = c.turns.Take(context.Background(), c.network, 1) // cannot fail: the number of calls that wait is not bounded
	c.inTurn = true
}

func (c *shakingConn) leave() {
	if c.inTurn {
		c.inTurn = false
		c.turns.Leave(c.network)
	}
}

// Idle runs f without a turn. f waits for something other than the client.
func (c *shakingConn) Idle(f func()) {
	if !c.inTurn {
		f()
		return
	}
	c.leave()
	defer c.enter()
	f()
}

// Read implements net.Conn.
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
		if !c.readBy.IsZero() && time.Now().After(c.readBy) { // the deadline passed while it waited for its turn
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

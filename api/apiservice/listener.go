package apiservice

import (
	"container/list"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema/service"
	"linkstream/schema/turns"
)

const (
	lingerTime  = 2 * time.Second
	lingerBytes = 1 << 20
	maxRefusing = 64 // refused connections that are answered at the same time; others are closed without an answer
	warnEvery   = 10 * time.Second
)

// connLimits bounds the connections of a listener.
type connLimits struct {
	Connections int
	PerAddress  int                   // of one IPv4 address or IPv6 /64; 0: no bound
	Exempt      func(netip.Addr) bool // says which addresses PerAddress does not bound
}

// listener accepts connections within limits. When all are in use, it closes the connection that has been idle for
// longest in favour of a new one. Its server must use track as ConnState.
type listener struct {
	net.Listener
	limits    connLimits
	log       *slog.Logger
	addresses *turns.Bound
	refusing  chan struct{} // an element per connection that is being refused
	full, ofAddress,
	shed *metrics.Counter

	mu     sync.Mutex
	open   int
	idle   list.List // of *conn that wait for a request, the longest first
	warned time.Time
}

// newListener returns a listener on the connections of inner, with metrics in set.
func newListener(inner net.Listener, limits connLimits, set *metrics.Set, log *slog.Logger) *listener {
	const refused = "linkstream_api_connections_refused_total"
	service.Describe(set, refused, "Connections refused, by reason.")
	service.Describe(set, "linkstream_api_connections", "Open connections of clients.")
	service.Describe(set, "linkstream_api_connections_shed_total", "Idle connections closed to make room for others.")
	l := &listener{
		Listener: inner, limits: limits, log: log, refusing: make(chan struct{}, maxRefusing),
		addresses: turns.NewBound(0, limits.PerAddress),
		full:      set.NewCounter(refused + `{reason="full"}`), ofAddress: set.NewCounter(refused + `{reason="address"}`),
		shed: set.NewCounter("linkstream_api_connections_shed_total"),
	}
	set.NewGauge("linkstream_api_connections", func() float64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return float64(l.open)
	})
	return l
}

// Accept waits for the next connection within the limits. Others are answered and closed.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, listener: l, addr: addrOf(inner)}
		if l.limits.Exempt == nil || !l.limits.Exempt(c.addr) {
			c.client = turns.Subnet(c.addr)
		}
		c.waiting.Store(true)
		if refusal := l.admit(c); refusal == nil {
			return c, nil
		} else {
			l.refuse(inner, refusal)
		}
	}
}

var (
	errFull      = &request.Refusal{Status: fasthttp.StatusServiceUnavailable, Message: "Too many connections."}
	errOfAddress = &request.Refusal{Status: fasthttp.StatusTooManyRequests, Message: "Too many connections from your " +
		"address."}
)

// admit counts a connection, or returns why it is refused.
func (l *listener) admit(c *conn) *request.Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.addresses.Take(c.client, 1) != nil {
		l.ofAddress.Inc()
		l.warn("connections of an address refused", "address", c.addr, "flag", "-api.max-connections-per-address",
			"max", l.limits.PerAddress)
		return errOfAddress
	}
	if l.open >= l.limits.Connections && !l.makeRoom() {
		l.addresses.Leave(c.client, 1)
		l.full.Inc()
		l.warn("connections refused: all are in use", "flag", "-api.max-connections", "max", l.limits.Connections)
		return errFull
	}
	l.open++
	c.place = l.idle.PushBack(c)
	return nil
}

// addrOf returns the address of a client, the zero Addr if it is not of TCP.
func addrOf(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// makeRoom closes the connection that has been idle for longest. The caller holds mu.
func (l *listener) makeRoom() bool {
	front := l.idle.Front()
	if front == nil {
		return false
	}
	c := front.Value.(*conn)
	l.shed.Inc()
	l.remove(c)
	c.Conn.Close()
	return true
}

// remove ends the counting of a connection. The caller holds mu.
func (l *listener) remove(c *conn) {
	l.busy(c)
	if c.removed {
		return
	}
	c.removed = true
	l.open--
	l.addresses.Leave(c.client, 1)
}

// busy marks a connection as not idle. The caller holds mu.
func (l *listener) busy(c *conn) {
	if c.place != nil {
		l.idle.Remove(c.place)
		c.place = nil
	}
}

// warn logs one message per warnEvery. The caller holds mu.
func (l *listener) warn(message string, args ...any) {
	if now := time.Now(); now.Sub(l.warned) >= warnEvery {
		l.warned = now
		l.log.Warn(message, args...)
	}
}

// refuse waits for the first byte of a request, because clients expect no answer before, answers it and closes the
// connection.
func (l *listener) refuse(inner net.Conn, refusal *request.Refusal) {
	select {
	case l.refusing <- struct{}{}:
	default:
		inner.Close()
		return
	}
	go func() {
		defer func() { <-l.refusing }()
		defer inner.Close()
		inner.SetDeadline(time.Now().Add(lingerTime))
		if _, err := inner.Read(make([]byte, 1)); err != nil {
			return
		}
		body := fmt.Sprintf("{\"message\":%q}\n", refusal.Message)
		fmt.Fprintf(inner, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nRetry-After: 5\r\n"+
			"Connection: close\r\n\r\n%s", refusal.Status, fasthttp.StatusMessage(refusal.Status), len(body), body)
		linger(inner)
	}()
}

// linger ends the sending side and discards what the client still sends: closing a connection with unread bytes
// resets it, which may take the answer back.
func linger(c net.Conn) {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c, lingerBytes)
}

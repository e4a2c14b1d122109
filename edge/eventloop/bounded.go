package eventloop

import (
	chain "container/list"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// never is a time, since the server's start, that does not come.
const never = time.Duration(math.MaxInt64)

// boundedConn is a connection that a goroutine serves. It counts until it is closed, and makes room for others
// while it waits for a request.
type boundedConn struct {
	net.Conn
	server *Server
	socket net.Conn // below TLS; closing it ends the goroutine
	leave  func()   // nil if a proxy names the client
	closed atomic.Bool
	idle   atomic.Bool // the next byte begins a request
	begins bool        // the next Read is the first one of a request, into an empty buffer of fasthttp's
	rest   []byte      // what has arrived behind the header that Read has returned
	large  []byte      // the start of a large header: see Server.serveLarge
	handed bool        // it was a loop's
	kept   int         // how many requests it has waited for

	// The rest is guarded by server.waiting.mu.
	place    *chain.Element // in server.waiting, or nil
	since    time.Duration  // when it began to wait, since the server's start
	received bool           // bytes of the client have arrived
}

// waiting are the connections of goroutines that wait for a request, longest wait first.
type waiting struct {
	mu    sync.Mutex
	conns chain.List // of *boundedConn
}

// admit makes b a counted connection that waits for its first request, or returns false and the answer that refuses it.
// perAddress is the answer for a client with too many connections, "" for none.
func (s *Server) admit(b *boundedConn, c net.Conn, perAddress string) (refusal string, admitted bool) {
	b.Conn, b.socket, b.server = c, c, s
	if proxied := s.proxied(c, perAddress); proxied != nil {
		b.Conn, b.socket = proxied, proxied
	} else if remote, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		addr := remote.AddrPort().Addr().Unmap()
		client := s.client(addr)
		if s.addresses.Take(client, 1) != nil {
			s.refuseAddress(addr.String())
			return perAddress, false
		}
		b.leave = func() { s.addresses.Leave(client, 1) }
	}
	if s.open.Add(1) > int64(s.cfg.MaxConnections) && !s.makeRoom() {
		s.open.Add(-1)
		if b.leave != nil {
			b.leave()
		}
		s.refuseFull()
		return tooMany, false
	}
	b.wait()
	return "", true
}

// makeRoom closes the connection that has waited longest for a request, and reports whether there is one. A loop
// closes its connection at its next turn: until then there is one too many.
func (s *Server) makeRoom() bool {
	longest, idle := s.longestIdle()
	return s.shedWaiting(idle) || longest.askToShed(idle) || s.shedWaiting(never)
}

// shedWaiting closes the connection of a goroutine that has waited longest for a request, if it has waited since
// before some time.
func (s *Server) shedWaiting(before time.Duration) bool {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	first := s.waiting.conns.Front()
	if first == nil || first.Value.(*boundedConn).since >= before {
		return false
	}
	longest := first.Value.(*boundedConn)
	longest.stopWaiting()
	_ = longest.socket.Close() // closing the TLS connection itself could wait for the client
	s.shed.Inc()
	return true
}

// runShort closes some connections because the system is out of descriptors or memory.
func (s *Server) runShort() {
	s.acceptErrors.Inc()
	for range shedPerShortage {
		if !s.makeRoom() {
			return
		}
	}
}

// wait puts the connection at the end of those that wait for a request. When the server stops, it closes a
// connection that has had a request before.
func (c *boundedConn) wait() {
	s := c.server
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	c.stopWaiting()
	if c.received && s.stopping.Load() {
		_ = c.socket.Close()
		return
	}
	c.since = time.Since(s.started)
	c.place = s.waiting.conns.PushBack(c)
	c.idle.Store(true)
	c.begins = true
}

// closeIdle closes the connections of goroutines that wait for a further request.
func (s *Server) closeIdle() {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	for e := s.waiting.conns.Front(); e != nil; {
		c := e.Value.(*boundedConn)
		e = e.Next()
		if c.received {
			c.stopWaiting()
			_ = c.socket.Close()
		}
	}
}

// work removes the connection from those that wait, once bytes of its client have arrived. received means that they
// just have.
func (c *boundedConn) work(received bool) {
	c.server.waiting.mu.Lock()
	defer c.server.waiting.mu.Unlock()
	if c.received = c.received || received; c.received {
		c.stopWaiting()
	}
}

// stopWaiting removes the connection from those that wait. The caller holds server.waiting.mu.
func (c *boundedConn) stopWaiting() {
	if c.place != nil {
		c.server.waiting.conns.Remove(c.place)
		c.place = nil
	}
}

func (c *boundedConn) bounded() *boundedConn { return c }

// clientAddr returns the address of the client, the zero Addr if it has none. It reads the PROXY protocol if there is
// any.
func (c *boundedConn) clientAddr() (addr netip.Addr) {
	if remote, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		addr = remote.AddrPort().Addr().Unmap()
	}
	return addr
}

// boundedOf returns the boundedConn of a connection that fasthttp serves.
func boundedOf(conn net.Conn) *boundedConn {
	return conn.(interface{ bounded() *boundedConn }).bounded()
}

// noteState records whether a connection waits for a request.
func noteState(conn net.Conn, state fasthttp.ConnState) {
	c := boundedOf(conn)
	switch state {
	case fasthttp.StateIdle:
		c.wait()
	case fasthttp.StateActive: // fasthttp also reports a new connection as active, before its first byte
		c.work(false)
		c.begins = false
	}
}

// Read ends the wait for a request. The first Read of a request returns its header and nothing else if there is room
// for it.
func (c *boundedConn) Read(p []byte) (n int, err error) {
	rest := c.rest
	if len(rest) > 0 {
		n = copy(p, rest)
		c.rest = rest[n:]
	} else {
		n, err = c.Conn.Read(p)
	}
	if n > 0 && c.idle.CompareAndSwap(true, false) {
		if len(rest) == 0 {
			c.kept++
		}
		c.work(true)
	}
	begins := c.begins
	if c.begins = false; begins && err == nil && len(p) == c.server.cfg.MaxHeaderBytes {
		return c.readHeader(p, n, rest)
	}
	return n, err
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	if !c.closed.Swap(true) {
		c.work(true)
		c.server.open.Add(-1)
		if c.leave != nil {
			c.leave()
		}
	}
	return c.Conn.Close()
}

// boundedListener admits connections within the bounds.
type boundedListener struct {
	net.Listener
	server *Server
}

// Accept waits for the next connection that the bounds admit.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if service.IsShortage(err) {
				l.server.runShort()
			}
			return nil, err
		}
		b := new(boundedConn)
		refusal, admitted := l.server.admit(b, c, tooManyPerAddress)
		if admitted {
			return b, nil
		}
		_, _ = c.Write([]byte(refusal)) // the kernel's buffer is empty: this does not wait
		_ = c.Close()
	}
}

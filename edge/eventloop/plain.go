package eventloop

import (
	chain "container/list"
	"net"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// plainHTTP is the part of a Server that serves HTTP by goroutines only: where there are no loops, and behind the PROXY protocol.
type plainHTTP struct {
	mu      sync.Mutex
	waiting chain.List // of *boundedConn that have sent no request, or no further one, the one that has waited longest first
}

// boundedListener keeps the bounds where there are no loops.
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
				l.server.runShortPlain()
			}
			return nil, err
		}
		refusal := l.server.admitPlain(&c)
		if refusal == "" {
			return c, nil
		}
		_, _ = c.Write([]byte(refusal)) // the kernel's buffer is empty: this does not wait
		_ = c.Close()
	}
}

func (s *Server) runShortPlain() {
	s.acceptErrors.Inc()
	for range shedPerShortage {
		if !s.shedPlain() {
			return
		}
	}
}

// admitPlain makes c a connection that counts, or returns what to tell its client.
func (s *Server) admitPlain(c *net.Conn) (refusal string) {
	bounded := &boundedConn{Conn: *c, server: s}
	if proxied := s.proxied(*c, tooManyPerAddress); proxied != nil {
		bounded.Conn = proxied
	} else if remote, ok := (*c).RemoteAddr().(*net.TCPAddr); ok {
		addr := remote.AddrPort().Addr().Unmap()
		counted, ok := s.addresses.enter(addr)
		if !ok {
			s.refuseAddress(addr.String())
			return tooManyPerAddress
		}
		if counted {
			bounded.leave = func() { s.addresses.leave(addr) }
		}
	}
	if s.open.Add(1) > int64(s.cfg.MaxConnections) && !s.shedPlain() && !s.shedSecure() {
		s.open.Add(-1)
		if bounded.leave != nil {
			bounded.leave()
		}
		s.refuseFull()
		return tooMany
	}
	bounded.wait()
	*c = bounded
	return ""
}

// shedPlain closes the connection of HTTP that has waited for its client longest, and reports whether there was one.
func (s *Server) shedPlain() bool {
	if s.shedLooped() {
		return true
	}
	s.plain.mu.Lock()
	defer s.plain.mu.Unlock()
	first := s.plain.waiting.Front()
	if first == nil {
		return false
	}
	longest := first.Value.(*boundedConn)
	longest.leaveLine()
	_ = longest.Conn.Close() // its goroutine notices
	s.shed.Inc()
	return true
}

// notePlain learns from fasthttp where a connection is.
func (s *Server) notePlain(c net.Conn, state fasthttp.ConnState) {
	b, ok := c.(*boundedConn)
	if !ok {
		noteIdle(c, state)
		return
	}
	switch state {
	case fasthttp.StateIdle:
		b.wait()
	case fasthttp.StateActive: // also told of a new connection, before its first byte
		b.work(false)
	}
}

// boundedConn gives its place back when it is closed.
type boundedConn struct {
	net.Conn
	server  *Server
	leave   func() // nil if it is not counted by address
	closed  atomic.Bool
	waiting atomic.Bool // the next byte begins a request

	// The rest is guarded by server.plain.mu.
	place    *chain.Element // in plain.waiting, or nil
	received bool           // bytes of the client have come
}

// wait notes that the connection waits for a request.
func (c *boundedConn) wait() {
	p := &c.server.plain
	p.mu.Lock()
	defer p.mu.Unlock()
	c.leaveLine()
	c.place = p.waiting.PushBack(c)
	c.waiting.Store(true)
}

// work notes that the connection has a request, if it is received or that was so before.
func (c *boundedConn) work(received bool) {
	c.server.plain.mu.Lock()
	defer c.server.plain.mu.Unlock()
	if c.received = c.received || received; c.received {
		c.leaveLine()
	}
}

// leaveLine takes the connection from those that wait. The caller holds plain.mu.
func (c *boundedConn) leaveLine() {
	if c.place != nil {
		c.server.plain.waiting.Remove(c.place)
		c.place = nil
	}
}

// Read notes that the connection does not wait any more.
func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.waiting.CompareAndSwap(true, false) {
		c.work(true)
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

package eventloop

import (
	chain "container/list"
	"net"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// plainHTTP is the part of a Server that serves HTTP on goroutines: without loops, and behind the PROXY protocol.
type plainHTTP struct {
	mu      sync.Mutex
	waiting chain.List // of *boundedConn that wait for a request, longest wait first
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

// admitPlain makes c a counted connection, or returns the answer that refuses it.
func (s *Server) admitPlain(c *net.Conn) (refusal string) {
	bounded := &boundedConn{Conn: *c, server: s}
	if proxied := s.proxied(*c, tooManyPerAddress); proxied != nil {
		bounded.Conn = proxied
	} else if remote, ok := (*c).RemoteAddr().(*net.TCPAddr); ok {
		addr := remote.AddrPort().Addr().Unmap()
		client := s.client(addr)
		if s.addresses.Take(client, 1) != nil {
			s.refuseAddress(addr.String())
			return tooManyPerAddress
		}
		bounded.leave = func() { s.addresses.Leave(client, 1) }
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

// shedPlain closes the HTTP connection that has waited longest for a request, and reports whether there was one.
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
	_ = longest.Conn.Close() // ends its goroutine
	s.shed.Inc()
	return true
}

// notePlain records whether a connection waits for a request.
func (s *Server) notePlain(c net.Conn, state fasthttp.ConnState) {
	b, ok := c.(*boundedConn)
	if !ok {
		noteIdle(c, state)
		return
	}
	switch state {
	case fasthttp.StateIdle:
		b.wait()
	case fasthttp.StateActive: // fasthttp also reports a new connection as active, before its first byte
		b.work(false)
	}
}

// boundedConn is a connection that stops counting when it is closed.
type boundedConn struct {
	net.Conn
	server  *Server
	leave   func() // nil if a proxy names the client
	closed  atomic.Bool
	waiting atomic.Bool // the next byte begins a request

	// The rest is guarded by server.plain.mu.
	place    *chain.Element // in plain.waiting, or nil
	received bool           // bytes of the client have arrived
}

// wait puts the connection at the end of those that wait for a request.
func (c *boundedConn) wait() {
	p := &c.server.plain
	p.mu.Lock()
	defer p.mu.Unlock()
	c.leaveLine()
	c.place = p.waiting.PushBack(c)
	c.waiting.Store(true)
}

// work removes the connection from those that wait, once bytes of its client have arrived. received means that they just have.
func (c *boundedConn) work(received bool) {
	c.server.plain.mu.Lock()
	defer c.server.plain.mu.Unlock()
	if c.received = c.received || received; c.received {
		c.leaveLine()
	}
}

// leaveLine removes the connection from those that wait. The caller holds plain.mu.
func (c *boundedConn) leaveLine() {
	if c.place != nil {
		c.server.plain.waiting.Remove(c.place)
		c.place = nil
	}
}

// Read ends the wait for a request.
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

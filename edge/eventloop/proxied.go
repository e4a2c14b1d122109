package eventloop

import (
	"io"
	"net"
	"sync"

	"github.com/pires/go-proxyproto"
)

// proxiedConn is a connection of a trusted proxy, which begins with the address of its client (PROXY protocol,
// version 1 or 2). The goroutine that serves the connection reads the address, so that a slow proxy does not keep
// others from being accepted. The client counts by address from then on.
type proxiedConn struct {
	*proxyproto.Conn
	server  *Server
	refusal string // the answer for a client with too many connections; "": none
	once    sync.Once
	err     error // of once

	mu     sync.Mutex
	closed bool
	leave  func() // nil if the client is not counted
}

// proxied returns c as the connection of its client, or nil if c is not from a proxy that speaks the protocol.
func (s *Server) proxied(c net.Conn, refusal string) *proxiedConn {
	if !s.cfg.ProxyProtocol || s.cfg.Exempt == nil {
		return nil
	}
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok || !s.cfg.Exempt(remote.AddrPort().Addr().Unmap()) {
		return nil
	}
	return &proxiedConn{server: s, refusal: refusal,
		Conn: proxyproto.NewConn(c, proxyproto.WithPolicy(proxyproto.REQUIRE),
			proxyproto.SetReadHeaderTimeout(s.cfg.ReadTimeout))}
}

// Read reads what the client has sent.
func (c *proxiedConn) Read(p []byte) (int, error) {
	c.once.Do(func() { c.err = c.enter() })
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(p)
}

// enter reads the address of the client, and counts its connection.
func (c *proxiedConn) enter() error {
	if c.ProxyHeader() == nil {
		return nil // Read says why
	}
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return nil
	}
	addr := remote.AddrPort().Addr().Unmap()
	client := c.server.client(addr)
	if c.server.addresses.Take(client, 1) != nil {
		c.server.refuseAddress(addr.String())
		_, _ = io.WriteString(c.Conn, c.refusal)
		return io.EOF
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.server.addresses.Leave(client, 1)
	} else {
		c.leave = func() { c.server.addresses.Leave(client, 1) }
	}
	return nil
}

// Close closes the connection.
func (c *proxiedConn) Close() error {
	c.mu.Lock()
	leave := c.leave
	c.closed, c.leave = true, nil
	c.mu.Unlock()
	if leave != nil {
		leave()
	}
	return c.Conn.Close()
}

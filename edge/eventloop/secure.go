package eventloop

import (
	chain "container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// freshGrace is how long clients that connected before a stop may take to send their request.
const freshGrace = time.Second

// secure is the part of a Server that serves HTTPS, on goroutines, since a handshake takes a hundred times as long as a redirect.
type secure struct {
	fast       *fasthttp.Server
	handshakes *handshakes

	mu      sync.Mutex
	waiting chain.List // of *secureConn that wait for a request, longest wait first

	full, resumed, failed *metrics.Counter
}

func (s *Server) initSecure(set *metrics.Set) {
	s.secure.fast = s.newFast(s.noteSecure)
	s.secure.handshakes = newHandshakes(s.cfg, set)
	const name = "linkstream_edge_tls_handshakes_total"
	service.Describe(set, name, "TLS handshakes, by result: full, resumed with a session ticket, or failed.")
	s.secure.full = set.NewCounter(name + `{result="full"}`)
	s.secure.resumed = set.NewCounter(name + `{result="resumed"}`)
	s.secure.failed = set.NewCounter(name + `{result="failed"}`)
}

// ServeTLS is Serve for HTTPS. It shares the handler and all bounds with Serve, which may run at the same time. It does not change
// config.
func (s *Server) ServeTLS(ctx context.Context, ln net.Listener, config *tls.Config, grace time.Duration) error {
	defer context.AfterFunc(ctx, func() { s.stopping.Store(true) })()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(min(freshGrace, grace), func() {
			for s.shedSecure() {
			}
		})
	})()
	return service.Serve(ctx, s.secure.fast, &secureListener{ln, s, config}, grace)
}

// secureListener begins TLS on the connections that the bounds admit.
type secureListener struct {
	net.Listener
	server *Server
	config *tls.Config
}

// Accept waits for the next connection that the bounds admit.
func (l *secureListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if service.IsShortage(err) {
				l.server.runShortSecure()
			}
			return nil, err
		}
		if secured := l.server.admitSecure(c, l.config); secured != nil {
			return secured, nil
		}
		_ = c.Close() // without an answer: there is no TLS session yet
	}
}

func (s *Server) runShortSecure() {
	s.acceptErrors.Inc()
	for range shedPerShortage {
		if !s.shedSecure() {
			return
		}
	}
}

// admitSecure returns nil if a bound refuses the connection.
func (s *Server) admitSecure(c net.Conn, config *tls.Config) net.Conn {
	c = &lazyConn{Conn: c}
	var addr netip.Addr
	var leave func() // nil: a proxy has yet to name the client
	if proxied := s.proxied(c, ""); proxied != nil {
		c = proxied
	} else if remote, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		addr = remote.AddrPort().Addr().Unmap()
		client := s.client(addr)
		if s.addresses.Take(client, 1) != nil {
			s.refuseAddress(addr.String())
			return nil
		}
		leave = func() { s.addresses.Leave(client, 1) }
	}
	if s.open.Add(1) > int64(s.cfg.MaxConnections) && !s.shedSecure() && !s.shedPlain() {
		s.open.Add(-1)
		if leave != nil {
			leave()
		}
		s.refuseFull()
		return nil
	}
	secured := &secureConn{server: s, shaking: shakingConn{Conn: c}, leave: leave}
	secured.Conn = tls.Server(&secured.shaking, config)
	return secured
}

// noteSecure records whether a connection waits for a request.
func (s *Server) noteSecure(c net.Conn, state fasthttp.ConnState) {
	secured, ok := c.(*secureConn)
	if !ok {
		return
	}
	s.secure.mu.Lock()
	defer s.secure.mu.Unlock()
	if secured.place != nil {
		s.secure.waiting.Remove(secured.place)
		secured.place = nil
	}
	if state == fasthttp.StateNew || state == fasthttp.StateIdle {
		secured.place = s.secure.waiting.PushBack(secured)
	}
}

// shedSecure closes the TLS connection that has waited longest for a request, and reports whether there was one.
func (s *Server) shedSecure() bool {
	s.secure.mu.Lock()
	defer s.secure.mu.Unlock()
	first := s.secure.waiting.Front()
	if first == nil {
		return false
	}
	longest := s.secure.waiting.Remove(first).(*secureConn)
	longest.place = nil
	// Its goroutine ends then. Closing the TLS connection itself could wait for the client.
	_ = longest.NetConn().Close()
	s.shed.Inc()
	return true
}

// secureConn is a TLS connection that stops counting when it is closed.
type secureConn struct {
	*tls.Conn
	server   *Server
	shaking  shakingConn    // below Conn
	shaken   bool           // Handshake was called
	underWay *chain.Element // in handshakes.underWay, or nil
	leave    func()         // nil if a proxy names the client
	place    *chain.Element // in secure.waiting, or nil
	closed   atomic.Bool
}

// Handshake is called by fasthttp before the first request. A second call has the result of the first one.
func (c *secureConn) Handshake() error {
	if c.shaken {
		return c.Conn.Handshake()
	}
	c.shaken = true
	counts := &c.server.secure
	resumed, err := c.shakeHands()
	switch {
	case err != nil:
		counts.failed.Inc()
		c.server.log.Debug("TLS handshake failed", "remote", c.RemoteAddr(), "error", err)
	case resumed:
		counts.resumed.Inc()
	default:
		counts.full.Inc()
	}
	return err
}

// shakeHands makes the handshake within the bounds. If it fails, the connection is closed.
func (c *secureConn) shakeHands() (resumed bool, err error) {
	handshakes := c.server.secure.handshakes
	var addr netip.Addr
	if remote, ok := c.RemoteAddr().(*net.TCPAddr); ok { // reads the PROXY protocol if there is any
		addr = remote.AddrPort().Addr().Unmap()
	}
	client, err := handshakes.begin(c, addr)
	if err != nil {
		c.server.complain("TLS handshakes refused: one network has all that it may have under way", "address", addr.String(),
			"flag", "-edge.max-handshakes-per-address", "max", c.server.cfg.MaxHandshakesPerAddress)
		return false, errors.Join(err, c.NetConn().Close())
	}
	defer handshakes.end(c, client)
	if err := c.Conn.Handshake(); err != nil {
		return false, err
	}
	return c.ConnectionState().DidResume, nil
}

// Close closes the connection.
func (c *secureConn) Close() error {
	if !c.closed.Swap(true) {
		c.server.open.Add(-1)
		if c.leave != nil {
			c.leave()
		}
	}
	return c.Conn.Close()
}

package eventloop

import (
	chain "container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// freshGrace is how long clients that connected before a stop may take to send their request.
const freshGrace = time.Second

// secure is the part of a Server that serves HTTPS, on goroutines, since a handshake takes a hundred times as long
// as a redirect.
type secure struct {
	fast       *fasthttp.Server
	handshakes *handshakes

	full, resumed, failed *metrics.Counter
}

func (s *Server) initSecure(set *metrics.Set) {
	s.secure.fast = s.newFast(s.serve)
	s.secure.handshakes = newHandshakes(s.cfg, set)
	const name = "linkstream_edge_tls_handshakes_total"
	service.Describe(set, name, "TLS handshakes, by result: full, resumed with a session ticket, or failed.")
	s.secure.full = set.NewCounter(name + `{result="full"}`)
	s.secure.resumed = set.NewCounter(name + `{result="resumed"}`)
	s.secure.failed = set.NewCounter(name + `{result="failed"}`)
}

// ServeTLS is Serve for HTTPS. It shares the handler and all bounds with Serve, which may run at the same time. It
// does not change config.
func (s *Server) ServeTLS(ctx context.Context, ln net.Listener, config *tls.Config, grace time.Duration) error {
	defer context.AfterFunc(ctx, func() { s.stopping.Store(true) })()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(min(freshGrace, grace), func() {
			for s.shedWaiting(never) {
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
				l.server.runShort()
			}
			return nil, err
		}
		if secured := l.server.admitSecure(c, l.config); secured != nil {
			return secured, nil
		}
		_ = c.Close() // without an answer: there is no TLS session yet
	}
}

// admitSecure returns nil if a bound refuses the connection.
func (s *Server) admitSecure(c net.Conn, config *tls.Config) net.Conn {
	secured := new(secureConn)
	if _, admitted := s.admit(&secured.boundedConn, &lazyConn{Conn: c}, ""); !admitted {
		return nil
	}
	secured.shaking.Conn = secured.socket
	secured.tls = tls.Server(&secured.shaking, config)
	secured.Conn = secured.tls
	return secured
}

// secureConn is a boundedConn with TLS.
type secureConn struct {
	boundedConn
	tls      *tls.Conn
	shaking  shakingConn    // below tls
	shaken   bool           // Handshake was called
	underWay *chain.Element // in handshakes.underWay, or nil
}

// ConnectionState makes fasthttp treat the connection as secure.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// Handshake is called by fasthttp before the first request. A second call has the result of the first one.
func (c *secureConn) Handshake() error {
	if c.shaken {
		return c.tls.Handshake()
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
	addr := c.clientAddr()
	client, err := handshakes.begin(c, addr)
	if err != nil {
		c.server.complain("TLS handshakes refused: one network has all that it may have under way", "address", addr.String(),
			"flag", "-edge.max-handshakes-per-address", "max", c.server.cfg.MaxHandshakesPerAddress)
		return false, errors.Join(err, c.socket.Close())
	}
	defer handshakes.end(c, client)
	if err := c.tls.Handshake(); err != nil {
		return false, err
	}
	return c.ConnectionState().DidResume, nil
}

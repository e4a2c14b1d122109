package redirect

import (
	"errors"
	"net"
	"os"
	"time"

	"linkstream/edge/socket"
)

// limitSteps is how often a limit on a connection is looked at before it counts as reached.
const limitSteps = 8

// Listener bounds the time that clients may take, as deadlines of the server for each request would, and costs next to
// nothing: a deadline that is set anew for each request is three timers moved and three readings of the clock.
//
// Instead, a deadline passes every eighth of the limit, whatever the connection does meanwhile. An operation during
// which it passes more than eight times has taken too long: between the limit and an eighth more.
type Listener struct {
	net.Listener
	read, write, idle time.Duration
}

// NewListener returns a listener for the server of cfg.
func NewListener(inner net.Listener, cfg Config) *Listener {
	return &Listener{inner, cfg.ReadTimeout, cfg.WriteTimeout, cfg.IdleTimeout}
}

// Accept waits for the next connection. Its first request has to come within the time of a request.
func (l *Listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: socket.New(inner), limits: l}
	if err := c.await(awaitsRest, l.read); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// What the read deadline of a connection is for.
const (
	awaitsNothing = iota
	awaitsRequest // the first byte of one: idle
	awaitsRest    // of a request that has begun
)

// conn is read and written by one goroutine, that of its server.
type conn struct {
	net.Conn
	limits *Listener

	answered bool // since the last read: the next one begins a request
	deadline int  // what the read deadline is for
	writing  bool // there is a write deadline
}

// Read reads. What comes after an answer is the next request, for which the connection may be idle; all of it has to be
// there a read timeout after its first byte.
func (c *conn) Read(p []byte) (int, error) {
	if c.answered {
		c.answered = false
		return c.readFirst(p)
	}
	if c.deadline != awaitsRest {
		if err := c.await(awaitsRest, c.limits.read); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

func (c *conn) readFirst(p []byte) (int, error) {
	if c.deadline != awaitsRequest {
		if err := c.await(awaitsRequest, c.limits.idle/limitSteps); err != nil {
			return 0, err
		}
	}
	for passed := 0; ; passed++ {
		n, err := c.Conn.Read(p)
		if err == nil || n > 0 || passed == limitSteps || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := c.await(awaitsRequest, c.limits.idle/limitSteps); err != nil {
			return 0, err
		}
	}
}

func (c *conn) await(what int, limit time.Duration) error {
	c.deadline = what
	return c.SetReadDeadline(time.Now().Add(limit))
}

// Write writes all of p.
func (c *conn) Write(p []byte) (int, error) {
	c.answered = true
	if !c.writing {
		if err := c.extendWrite(); err != nil {
			return 0, err
		}
	}
	for written, passed := 0, 0; ; passed++ {
		n, err := c.Conn.Write(p[written:])
		written += n
		if err == nil || passed == limitSteps || !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
		if err := c.extendWrite(); err != nil {
			return written, err
		}
	}
}

func (c *conn) extendWrite() error {
	c.writing = true
	return c.SetWriteDeadline(time.Now().Add(c.limits.write / limitSteps))
}

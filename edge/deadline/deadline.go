// Package deadline bounds the time that the clients of a server may take, at almost no cost per request.
//
// A server usually sets a new deadline for every request. That moves three timers and reads the clock three times. Here a
// connection that is busy keeps its deadlines instead. Each is an eighth of the limit away, and an operation in which
// more than eight deadlines pass has taken too long:
//
//	limit        ├───────────────────────────────────────────────┤
//	deadlines  ──┼─────┼─────┼─────┼─────┼─────┼─────┼─────┼─────┼──▶ time
//	operation       ├──────────────────── 8 passed ──────────────┤ fails
//
// So an operation fails between the limit and an eighth of it later. There are three limits:
//
//	client  ──▶ │ first byte ........ last byte │            │ answer taken │            │ first byte ...
//	limit       │◀─────────── Read ────────────▶│            │◀── Write ───▶│◀── Idle ──▶│
//
// Read is exact: its deadline is set when the first byte of a request has arrived, and once when the connection is
// accepted. If the whole request arrives with its first read, which is the normal case, no deadline is set.
package deadline

import (
	"errors"
	"net"
	"os"
	"time"

	"linkstream/edge/socket"
)

// steps is the number of deadlines that an operation may miss.
const steps = 8

// Limits are the times that a client may take.
type Limits struct {
	Read  time.Duration // from the first byte of a request to its last; from accept to the end of the first request
	Write time.Duration // to take a part of an answer
	Idle  time.Duration // between an answer and the first byte of the next request
}

// Listener bounds the connections that another listener accepts.
type Listener struct {
	net.Listener
	limits Limits
}

// NewListener returns a listener that accepts the connections of inner and applies limits to them.
func NewListener(inner net.Listener, limits Limits) *Listener { return &Listener{inner, limits} }

// Accept waits for the next connection. Only one goroutine at a time may use the connection.
func (l *Listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: socket.New(inner), limits: &l.limits}
	if err := c.setReadDeadline(forRest, l.limits.Read); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// purpose is what the read deadline of a connection bounds.
type purpose int

const (
	forFirst purpose = iota + 1 // the wait for the first byte of a request
	forRest                     // the arrival of the rest of it
)

// conn is a connection with limits.
type conn struct {
	net.Conn
	limits *Limits

	answered bool    // there was a Write since the last Read, so the next Read begins a request
	reading  purpose // of the read deadline
	writing  bool    // there is a write deadline
}

// Read reads a part of a request. The first Read after a Write waits for the next request.
func (c *conn) Read(p []byte) (int, error) {
	if c.answered {
		c.answered = false
		return c.readFirst(p)
	}
	if c.reading != forRest {
		if err := c.setReadDeadline(forRest, c.limits.Read); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

func (c *conn) readFirst(p []byte) (int, error) {
	if c.reading != forFirst {
		if err := c.setReadDeadline(forFirst, c.limits.Idle/steps); err != nil {
			return 0, err
		}
	}
	for passed := 0; ; passed++ {
		n, err := c.Conn.Read(p)
		if err == nil || n > 0 || passed == steps || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := c.setReadDeadline(forFirst, c.limits.Idle/steps); err != nil {
			return 0, err
		}
	}
}

func (c *conn) setReadDeadline(reading purpose, after time.Duration) error {
	c.reading = reading
	return c.SetReadDeadline(time.Now().Add(after))
}

// Write writes all of p.
func (c *conn) Write(p []byte) (int, error) {
	c.answered = true
	if !c.writing {
		if err := c.setWriteDeadline(); err != nil {
			return 0, err
		}
	}
	for written, passed := 0, 0; ; passed++ {
		n, err := c.Conn.Write(p[written:])
		written += n
		if err == nil || passed == steps || !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
		if err := c.setWriteDeadline(); err != nil {
			return written, err
		}
	}
}

func (c *conn) setWriteDeadline() error {
	c.writing = true
	return c.SetWriteDeadline(time.Now().Add(c.limits.Write / steps))
}

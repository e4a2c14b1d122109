package eventloop

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// lazyConn is a connection whose deadlines are cheap to move, as a server does three times per request. If the new
// deadline is later, the timer of the connection below stays, and is set again when it fires too early.
type lazyConn struct {
	net.Conn
	read, write lazyDeadline
}

// lazyDeadline is a deadline of a lazyConn.
type lazyDeadline struct {
	mu       sync.Mutex
	deadline time.Time // zero: none
	timer    time.Time // that the connection below has, no later than the deadline; zero: none
}

// set sets the deadline, and the timer by arm if it has to fire earlier.
func (d *lazyDeadline) set(t time.Time, arm func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deadline = t
	if t.IsZero() || !d.timer.IsZero() && !t.Before(d.timer) {
		return nil
	}
	d.timer = t
	return arm(t)
}

// extend reports whether the timer has fired before the deadline, and sets it again by arm.
func (d *lazyDeadline) extend(arm func(time.Time) error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.deadline.IsZero() && !time.Now().Before(d.deadline) {
		return false
	}
	d.timer = d.deadline
	return arm(d.timer) == nil
}

// Read implements net.Conn.
func (c *lazyConn) Read(p []byte) (n int, err error) {
	for {
		n, err = c.Conn.Read(p)
		if err == nil || n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.read.extend(c.Conn.SetReadDeadline) {
			return n, err
		}
	}
}

// Write implements net.Conn.
func (c *lazyConn) Write(p []byte) (n int, err error) {
	for {
		written, err := c.Conn.Write(p[n:])
		n += written
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.write.extend(c.Conn.SetWriteDeadline) {
			return n, err
		}
	}
}

// SetReadDeadline implements net.Conn.
func (c *lazyConn) SetReadDeadline(t time.Time) error { return c.read.set(t, c.Conn.SetReadDeadline) }

// SetWriteDeadline implements net.Conn.
func (c *lazyConn) SetWriteDeadline(t time.Time) error {
	return c.write.set(t, c.Conn.SetWriteDeadline)
}

// SetDeadline implements net.Conn.
func (c *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

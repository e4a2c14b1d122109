package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// handed is a loop's connection while a goroutine serves it. It yields the bytes that the loop has read already, then those
// of the kernel. Between requests, when the server has nothing to do but to wait for the next one, it ends: the server sees
// the end of the connection, and Close gives it back to the loop.
//
// Most of them are here for one look-up in the store: they read what the loop has read, write an answer and come back. So
// the descriptor is made known to Go's poller only when there is something to wait for.
type handed struct {
	loop    *loop
	conn    *conn // whose other fields are the loop's
	fd      int32
	remote  *net.TCPAddr
	closing bool // the connection ends after out
	late    bool // no request has come in time

	mu      sync.Mutex
	in      []byte // yet to be read
	out     []byte // answers of the loop that are yet to be written
	between bool   // two requests, says the server
	done    bool   // the server wants to wait for the next request
	file    *os.File
	readBy  time.Time
	writeBy time.Time
	closed  bool
}

// handOver has a goroutine serve a connection that is in no list. h has what the loop has read and not written; told says
// that the poller has told of more.
func (l *loop) handOver(c *conn, h *handed, told bool) {
	if c == &l.guest {
		c = l.settle(c)
	}
	h.loop, h.conn, h.fd, h.remote = l, c, c.fd, c.peer.tcpAddr()
	c.state, c.told, c.handed = withGoroutine, told, h
	l.elsewhere++
	l.server.handedOver.Inc()
	go h.serve()
}

// takeBack waits for the next request of a connection that a goroutine had.
func (l *loop) takeBack(c *conn) {
	l.elsewhere--
	c.handed = nil
	l.server.returned.Inc()
	if l.draining {
		l.serve(c, 0)
		return
	}
	l.keep(c, idle, c.told)
}

func (h *handed) serve() {
	if len(h.out) > 0 {
		_ = h.SetWriteDeadline(time.Now().Add(h.loop.server.cfg.WriteTimeout))
		out := h.out
		h.out = nil
		if _, err := h.Write(out); err != nil || h.closing {
			_ = h.Close()
			return
		}
	}
	if len(h.in) == 0 && !h.late {
		h.giveBack()
		return
	}
	if err := h.loop.server.fast.ServeConn(h); err != nil { // which closes it
		h.loop.server.log.Debug("connection ended", "remote", h.remote, "error", err)
	}
}

// giveBack is for a connection that came for its answers only.
func (h *handed) giveBack() {
	h.mu.Lock()
	h.done = true
	h.mu.Unlock()
	_ = h.Close()
}

// noteIdle learns from the server where a connection is: see fasthttp.ConnState.
func noteIdle(c net.Conn, state fasthttp.ConnState) {
	if h, ok := c.(*handed); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.between = state == fasthttp.StateIdle
	}
}

// Read reads what the loop has read, then what the kernel has.
func (h *handed) Read(p []byte) (int, error) {
	if n, err := h.readHere(p); n > 0 || err != nil {
		return n, err
	}
	f, err := h.open()
	if err != nil {
		return 0, h.fail("read", err)
	}
	n, err := f.Read(p)
	if err != nil && err != io.EOF {
		err = h.fail("read", err)
	}
	return n, err
}

// readHere reads without the kernel, if it can.
func (h *handed) readHere(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(h.in) > 0:
		n := copy(p, h.in)
		h.in = h.in[n:]
		return n, nil
	case h.between:
		h.done = true
		return 0, io.EOF
	case h.late:
		return 0, h.fail("read", os.ErrDeadlineExceeded)
	}
	return 0, nil
}

// Write writes all of p.
func (h *handed) Write(p []byte) (int, error) {
	n, err := h.writeNow(p)
	if err == nil && n == len(p) {
		return n, nil
	}
	if err != nil {
		return n, h.fail("write", err)
	}
	f, err := h.open()
	if err != nil {
		return n, h.fail("write", err)
	}
	rest, err := f.Write(p[n:])
	if err != nil {
		err = h.fail("write", err)
	}
	return n + rest, err
}

// writeNow writes what the kernel has room for, unless that takes more than one system call.
func (h *handed) writeNow(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, net.ErrClosed
	}
	if h.file != nil || len(p) == 0 || !h.writeBy.IsZero() && !time.Now().Before(h.writeBy) {
		return 0, nil
	}
	n, errno := send(h.fd, p, false)
	switch errno {
	case 0:
		return n, nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	default:
		return 0, os.NewSyscallError("sendto", errno)
	}
}

// open makes the connection known to Go's poller, by a descriptor of its own: the loop's stays as it is.
func (h *handed) open() (*os.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, net.ErrClosed
	case h.file != nil:
		return h.file, nil
	}
	fd, err := unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	h.file = os.NewFile(uintptr(fd), "tcp")
	return h.file, errors.Join(h.file.SetReadDeadline(h.readBy), h.file.SetWriteDeadline(h.writeBy))
}

// Close closes the connection or, if the server wanted to wait for the next request, gives it back to its loop.
func (h *handed) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return h.fail("close", net.ErrClosed)
	}
	h.closed = true
	back := h.done
	var err error
	if h.file != nil {
		err = h.file.Close()
	}
	h.mu.Unlock()
	l := h.loop
	if back && l.post(message{kind: comesBack, conn: h.conn}) {
		return nil
	}
	closeFD(h.fd)
	l.server.leave(h.conn)
	l.post(message{kind: isGone, conn: h.conn})
	return err
}

// abort ends what the goroutine waits for.
func (h *handed) abort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		_ = unix.Shutdown(int(h.fd), unix.SHUT_RDWR)
	}
}

// SetDeadline implements net.Conn.
func (h *handed) SetDeadline(t time.Time) error {
	return errors.Join(h.SetReadDeadline(t), h.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (h *handed) SetReadDeadline(t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readBy = t
	if h.closed {
		return h.fail("set", net.ErrClosed)
	}
	if h.file == nil {
		return nil
	}
	return h.file.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (h *handed) SetWriteDeadline(t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writeBy = t
	if h.closed {
		return h.fail("set", net.ErrClosed)
	}
	if h.file == nil {
		return nil
	}
	return h.file.SetWriteDeadline(t)
}

// RemoteAddr returns the client's address.
func (h *handed) RemoteAddr() net.Addr { return h.remote }

// LocalAddr returns the address that the loop listens on.
func (h *handed) LocalAddr() net.Addr { return h.loop.peer.local }

// fail returns err as package net would.
func (h *handed) fail(op string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
		if errno, ok := err.(syscall.Errno); ok {
			err = os.NewSyscallError(op, errno)
		}
	}
	if errors.Is(err, os.ErrClosed) {
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "tcp", Source: h.LocalAddr(), Addr: h.remote, Err: err}
}

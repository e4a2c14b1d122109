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

// handed is a loop's connection while a goroutine serves it. Read returns the bytes that the loop has read, then those of the kernel.
// Between two requests Read returns io.EOF, so that fasthttp's server ends, and Close gives the connection back to the loop.
//
// Many connections are here for one answer, without waiting for their client. So the descriptor is registered with Go's poller only
// when a read or write has to wait.
type handed struct {
	loop    *loop
	conn    *conn // whose other fields are the loop's
	fd      int32
	remote  *net.TCPAddr
	closing bool // the connection ends after out
	late    bool // no request arrived in time

	mu      sync.Mutex
	in      []byte // bytes that are not read yet
	out     []byte // answers of the loop that are not written yet
	between bool   // the server waits between two requests
	done    bool   // the loop is to wait for the next request
	file    *os.File
	readBy  time.Time
	writeBy time.Time
	closed  bool
}

// handOver starts a goroutine that serves a connection that is in no list. h has the bytes that the loop has read and the answers that
// it has not written; told means that the poller has reported more bytes.
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

// takeBack keeps a connection that a goroutine has given back, until its next request.
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

// giveBack returns a connection to its loop after the answers are written.
func (h *handed) giveBack() {
	h.mu.Lock()
	h.done = true
	h.mu.Unlock()
	_ = h.Close()
}

// noteIdle records whether a connection waits between two requests: see fasthttp.ConnState.
func noteIdle(c net.Conn, state fasthttp.ConnState) {
	if h, ok := c.(*handed); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.between = state == fasthttp.StateIdle
	}
}

// Read returns the bytes that the loop has read, then those of the kernel.
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

// readHere is Read without the kernel. It returns 0 and nil if the kernel has to be asked.
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

// writeNow writes as much as the kernel's buffer takes in one system call.
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

// open registers a copy of the descriptor with Go's poller. The loop's descriptor stays as it is.
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

// Close closes the connection, or gives it back to its loop between two requests.
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

// abort ends reads and writes of the goroutine.
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

package eventloop

import (
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// handed is a connection that a loop has left to a goroutine, which serves it until it ends.
type handed struct {
	net.Conn
	in      []byte // bytes that the loop has read, and nobody else
	out     []byte // answers that the loop has not sent
	closing bool   // the connection ends after out
	late    bool   // no request arrived in time
}

// handOver starts a goroutine that serves a connection that is in no list.
func (l *loop) handOver(c *conn, h *handed) {
	s, fd := l.server, c.fd
	client := s.client(c.peer.addr())
	leave := func() { s.addresses.Leave(client, 1) }
	if c.registered { // the connection outlives this descriptor
		_ = l.poller.control(unix.EPOLL_CTL_DEL, fd, 0, 0, 0)
	}
	if c != &l.guest {
		l.table.release(c)
	}
	h.in, h.out = slices.Clone(h.in), slices.Clone(h.out)
	s.handedOver.Inc()
	s.handed.Add(1)
	go func() {
		defer s.handed.Add(-1)
		s.serveHanded(fd, h, leave)
	}()
}

func (s *Server) serveHanded(fd int32, h *handed, leave func()) {
	file := os.NewFile(uintptr(fd), "connection")
	socket, err := net.FileConn(file) // has a descriptor of its own
	_ = file.Close()
	if err != nil {
		s.acceptErrors.Inc()
		s.open.Add(-1)
		leave()
		return
	}
	h.Conn = socket
	c := &boundedConn{Conn: h, socket: socket, server: s, leave: leave, handed: true, received: true}
	if !h.begin(c) {
		_ = c.Close()
		return
	}
	c.begins = true
	if err := s.fast.ServeConn(c); err != nil { // which closes it
		s.log.Debug("connection ended", "remote", c.RemoteAddr(), "error", err)
	}
}

// begin sends the answers of the loop, and waits for the next request if there is none. It returns false if the
// connection ends.
func (h *handed) begin(c *boundedConn) bool {
	cfg := &c.server.cfg
	if len(h.out) > 0 {
		_ = h.SetWriteDeadline(time.Now().Add(cfg.WriteTimeout))
		if _, err := h.Conn.Write(h.out); err != nil || h.closing {
			return false
		}
		h.out = nil
	}
	if len(h.in) > 0 || h.late {
		return true
	}
	c.wait()
	_ = h.SetReadDeadline(time.Now().Add(cfg.IdleTimeout))
	first := make([]byte, 1)
	n, err := c.Read(first)
	h.in = first[:n]
	return err == nil
}

// Read returns the bytes that the loop has read, then the kernel's.
func (h *handed) Read(p []byte) (int, error) {
	switch {
	case len(h.in) > 0:
		n := copy(p, h.in)
		h.in = h.in[n:]
		return n, nil
	case h.late:
		return 0, os.ErrDeadlineExceeded
	}
	return h.Conn.Read(p)
}

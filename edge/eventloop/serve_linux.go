package eventloop

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"linkstream/schema/service"
)

const (
	// maxPipeline bounds the requests of one connection that are answered in a turn, in which all others wait.
	maxPipeline = 32
	// maxKeptOut bounds the buffer of answers that a loop keeps.
	maxKeptOut = 64 << 10
)

// serve reads once from a connection that is in no list, and answers the requests. events are its events.
func (l *loop) serve(c *conn, events uint32) {
	n, errno := receive(c.fd, l.in)
	switch {
	case errno == unix.EAGAIN:
		state := fresh
		if c.state == idle {
			state = idle
		}
		l.keep(c, state, false)
		return
	case errno != 0 || n == 0:
		l.close(c)
		return
	}
	// If the buffer is full, or the client has closed its side, no event reports the rest.
	l.respond(c, l.in[:n], n == len(l.in) || events&unix.EPOLLRDHUP != 0)
}

// respond answers the requests that a connection in no list has sent. again means that there may be more to read.
func (l *loop) respond(c *conn, in []byte, again bool) {
	rest, closing := l.answer(c, in)
	out := l.request.out
	sent := 0
	if len(out) > 0 {
		var errno unix.Errno
		sent, errno = send(c.fd, out, closing)
		if errno != 0 && errno != unix.EAGAIN {
			l.close(c)
			return
		}
		sent = max(sent, 0)
	}
	switch {
	case sent < len(out):
		l.handOver(c, &handed{out: out[sent:], in: rest, closing: closing})
	case closing:
		endSending(c.fd)
		l.close(c)
	case len(rest) > 0 && l.request.awaited != nil:
		l.park(c, l.request.awaited, rest, again)
	case len(rest) > 0:
		l.handOver(c, &handed{in: rest})
	default:
		l.keep(c, idle, again)
	}
	if cap(l.request.out) > maxKeptOut {
		l.request.out = nil
	}
}

// answer appends the answers to the requests at the front of in to request.out. It stops at the first one that a
// goroutine has to answer, or that has to wait, and returns in from there. closing says that the last answer ends
// the connection.
func (l *loop) answer(c *conn, in []byte) (rest []byte, closing bool) {
	l.peer.set(&c.peer)
	r := &l.request
	r.out = r.out[:0]
	l.reader.Reset(in)
	l.parser.Reset(&l.reader)
	for range maxPipeline {
		left := l.parser.Buffered() + l.reader.Len()
		if left == 0 {
			return nil, false
		}
		rest = in[len(in)-left:]
		r.sent, r.awaited = false, nil
		l.clean()
		r.dirty = true
		if r.Request.Header.Read(l.parser) != nil || !plain(&r.Request) {
			return rest, false
		}
		before := len(r.out)
		answered := l.server.handler.TryServe(r)
		r.Resumed = nil
		if !answered {
			r.out = r.out[:before]
			return rest, false
		}
		if closing = l.finish(r.Request.Header.ConnectionClose()); closing {
			return nil, true
		}
	}
	left := l.parser.Buffered() + l.reader.Len()
	r.awaited = nil
	return in[len(in)-left:], false
}

// plain reports whether a request is one that a loop may answer: a GET or HEAD of a path, without a body, that
// expects and upgrades nothing. All others are for fasthttp's server.
func plain(r *fasthttp.Request) bool {
	h := &r.Header
	return (h.IsGet() || h.IsHead()) && h.ContentLength() == -2 && // neither Content-Length nor chunks
		len(r.URI().PathOriginal()) > 0 && // it is empty where the target or Host cannot be parsed
		len(h.PeekCanonical(headerExpect)) == 0 && len(h.PeekCanonical(headerUpgrade)) == 0 && framed(h)
}

// framed reports whether every server sees the end of the request at the same place, and lets ConnectionClose say
// whether the client wants the connection to end: see service.CheckFraming.
func framed(h *fasthttp.RequestHeader) bool {
	closing, err := service.CheckFraming(h)
	if closing {
		h.SetConnectionClose()
	}
	return err == nil
}

var (
	headerExpect  = []byte("Expect")
	headerUpgrade = []byte("Upgrade")
)

// clean empties the request and the response of the one before.
func (l *loop) clean() {
	if r := &l.request; r.dirty {
		r.dirty = false
		r.Request.Reset()
		r.Response.Reset()
	}
}

// finish completes the answer to a request, and reports whether it is the last one of its connection. asked means
// that the client wants it to be.
func (l *loop) finish(asked bool) (closing bool) {
	r := &l.request
	closing = asked || r.Response.Header.ConnectionClose() || l.server.stopping.Load()
	alive := !closing && !r.Request.Header.IsHTTP11() // clients of HTTP/1.0 expect the header
	if r.sent {
		switch {
		case closing:
			r.out = append(r.out, "Connection: close\r\n"...)
		case alive:
			r.out = append(r.out, "Connection: keep-alive\r\n"...)
		}
		r.out = append(r.out, "\r\n"...)
		return closing
	}
	r.dirty = true
	header := &r.Response.Header
	header.SetNoDefaultContentType(true)
	switch {
	case closing:
		header.SetConnectionClose()
	case alive:
		header.Set("Connection", "keep-alive")
	}
	r.Response.SkipBody = r.IsHead()
	_ = r.Response.Write(l.writer) // to memory
	_ = l.writer.Flush()
	return closing
}

// answers is where Response.Write writes to.
type answers Request

// Write appends to the answers of the turn.
func (a *answers) Write(p []byte) (int, error) {
	a.out = append(a.out, p...)
	return len(p), nil
}

// keep waits for the next bytes of a connection: the first ones, or the next request. again means that the poller may
// already have reported bytes that have not been read.
func (l *loop) keep(c *conn, state connState, again bool) {
	if l.draining {
		l.close(c)
		return
	}
	if c == &l.guest {
		c = l.enter(c)
	}
	switch {
	case !c.registered && !l.register(c, unix.EPOLL_CTL_ADD): // which reports earlier bytes, too
		return
	case c.registered && again && !l.register(c, unix.EPOLL_CTL_MOD): // and so does this
		return
	}
	c.state = state
	if state == fresh {
		l.fresh.push(c, l.now)
	} else {
		l.idle.push(c, l.now)
	}
}

// enter gives a connection that was just accepted a place in the table.
func (l *loop) enter(guest *conn) *conn {
	c := l.table.take()
	c.fd, c.peer = guest.fd, guest.peer
	return c
}

// register registers a connection with the poller, which reports earlier events, too. It closes the connection and
// returns false if the poller refuses.
func (l *loop) register(c *conn, operation int) bool {
	if err := l.poller.control(operation, c.fd, edges, c.index, c.generation); err != nil {
		l.server.acceptErrors.Inc()
		l.server.complain("connection closed: it cannot be waited for", "error", err)
		l.close(c)
		return false
	}
	c.registered = true
	return true
}

// close closes a connection that is in no list.
func (l *loop) close(c *conn) {
	closeFD(c.fd)
	l.server.leave(c)
	if c != &l.guest {
		l.table.release(c)
	}
}

// peerConn is the connection that a handler sees: its addresses.
type peerConn struct {
	net.Conn
	local  net.Addr
	remote net.TCPAddr
	ip     [16]byte
}

func (p *peerConn) set(from *peer) {
	p.ip = from.ip
	p.remote.IP = p.ip[:]
	if v4 := p.remote.IP.To4(); v4 != nil {
		p.remote.IP = v4
	}
	p.remote.Port = int(from.port)
}

// RemoteAddr returns the client's address, which holds until the handler returns.
func (p *peerConn) RemoteAddr() net.Addr { return &p.remote }

// LocalAddr returns the listener's address.
func (p *peerConn) LocalAddr() net.Addr { return p.local }

// The server's time limits hold for connections of loops by lists, not by deadlines.

// SetDeadline does nothing.
func (p *peerConn) SetDeadline(time.Time) error { return nil }

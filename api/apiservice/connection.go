package apiservice

import (
	"bytes"
	"container/list"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"linkstream/schema/turns"
)

// track is the ConnState of a server on a listener.
func track(nc net.Conn, state fasthttp.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case state == fasthttp.StateIdle && !c.removed && c.place == nil:
		c.place = l.idle.PushBack(c)
		c.waiting.Store(true)
	case state == fasthttp.StateActive && c.received: // the server calls a new connection active before its first byte
		l.busy(c)
	}
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	listener *listener
	addr     netip.Addr
	client   turns.Client // zero for an exempt address
	unread   atomic.Bool  // the client may still be sending when the connection is closed
	waiting  atomic.Bool  // the next byte begins a request

	// Of the goroutine that serves the connection:
	silent bool   // the next 100 Continue is left out
	held   []byte // the beginning of it, perhaps

	// The rest is guarded by listener.mu.
	place    *list.Element // in listener.idle
	received bool          // bytes have come
	removed  bool          // closed, and not counted
}

// Read marks the connection as busy when the first byte of a request arrives.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.waiting.CompareAndSwap(true, false) {
		c.listener.mu.Lock()
		c.received = true
		c.listener.busy(c)
		c.listener.mu.Unlock()
	}
	return n, err
}

func (c *conn) Close() error {
	if c.unread.CompareAndSwap(true, false) {
		linger(c.Conn)
	}
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// closeUnread makes the server close the connection after the answer if the body has not been read, because the
// server would parse the rest of the body as the next request.
func closeUnread(http *fasthttp.RequestCtx) {
	if http.RequestBodyStream() == nil || http.Request.Header.ContentLength() == 0 {
		return
	}
	closeGently(http)
}

// closeGently makes the server close the connection after the answer, which the client gets even while it is still
// sending.
func closeGently(http *fasthttp.RequestCtx) {
	http.SetConnectionClose()
	if c, ok := http.Conn().(*conn); ok {
		c.unread.Store(true)
	}
}

// askFirst makes a server with service.CheckRequests call wanted before it reads any of a request's body and before
// it answers 100 Continue. If wanted returns false, the server sends the answer that wanted has made and closes the
// connection. The server would otherwise wait for the first byte of each body. Therefore every request with a body
// passes as one that expects 100 Continue, and the connection leaves this answer out for clients that do not.
func askFirst(srv *fasthttp.Server, wanted func(*fasthttp.RequestCtx) bool) {
	received, expect := srv.HeaderReceived, srv.ExpectHandler
	srv.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		if length := h.ContentLength(); length > 0 || length == chunked {
			h.Set(fasthttp.HeaderExpect, "100-continue")
		}
		return received(h)
	}
	srv.ExpectHandler = func(http *fasthttp.RequestCtx) int {
		status := expect(http)
		if status == fasthttp.StatusContinue && !wanted(http) {
			status = http.Response.StatusCode()
		}
		c, ok := http.Conn().(*conn)
		switch {
		case status != fasthttp.StatusContinue:
			closeGently(http)
		case ok:
			c.silent = !expectsContinue(http.Request.Header.RawHeaders())
		}
		return status
	}
}

// chunked is the length of a body in chunks, says fasthttp.
const chunked = -1

// expectsContinue reports whether header lines as they were received have the expectation (RFC 9110, section 10.1.1).
func expectsContinue(lines []byte) bool {
	for line := range bytes.Lines(lines) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte(fasthttp.HeaderExpect)) &&
			bytes.EqualFold(bytes.TrimSpace(value), []byte("100-continue")) {
			return true
		}
	}
	return false
}

var continueAnswer = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// Write leaves out the next 100 Continue if the connection is silent. It may come in parts, at the end of what is
// written.
func (c *conn) Write(b []byte) (int, error) {
	if !c.silent {
		return c.Conn.Write(b)
	}
	said := append(c.held, b...)
	if rest, found := bytes.CutSuffix(said, continueAnswer); found {
		said, c.held, c.silent = rest, nil, false
	} else {
		end := len(said) - len(continueAnswer)
		for end = max(0, end); !bytes.HasPrefix(continueAnswer, said[end:]); {
			end++
		}
		said, c.held = said[:end], bytes.Clone(said[end:])
	}
	if len(said) > 0 {
		if _, err := c.Conn.Write(said); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

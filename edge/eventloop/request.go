package eventloop

import (
	"time"

	"github.com/valyala/fasthttp"
)

// Handler is what a Server serves.
type Handler interface {
	// TryServe answers r and returns true, or returns false without a visible effect. It runs on a loop that has
	// thousands of other connections to serve, so it must not block: no channel, no I/O, no lock that is held during
	// I/O. After false, Serve gets the request, from its start, on a goroutine, unless TryServe has called r.Await.
	TryServe(r *Request) bool
	// Serve answers any request and may take its time.
	Serve(ctx *fasthttp.RequestCtx)
	// Reject answers bytes that are not a request, or a request that is too large or too slow. The connection is
	// closed after it.
	Reject(ctx *fasthttp.RequestCtx, err error)
}

// Request is a request on a loop: a GET or HEAD without a body. The loop owns it and every byte it gives out, and
// uses it again once TryServe returns. Its Response is the answer unless SendHeader is called; a body stream,
// Hijack and TimeoutError are for Serve only. ConnID, ConnTime and ConnRequestNum mean nothing, and Time is not
// set: see Now.
type Request struct {
	*fasthttp.RequestCtx
	// Now is when the poller reported the request, or a little later.
	Now time.Time
	// Loop is the loop's number, from 0. Loops that write to different places do not slow each other down.
	Loop int
	// Resumed is the waiter that the request was given when it was tried before; nil if this is the first time.
	Resumed *Waiter

	newWaiter func() *Waiter
	unused    *Waiter // returned by Waiter, and not used yet
	awaited   *Waiter // of the request at hand, after Await

	out   []byte // the answers of this turn
	sent  bool   // SendHeader was called
	dirty bool   // the RequestCtx has something of a request in it

	// The start of SendHeader's last answer, up to Date: it changes once per second.
	head       []byte
	headStatus int
	headSecond int64
}

// Waiter is a request whose connection is parked until Done is called. It costs neither a goroutine nor a wake-up
// of its own.
type Waiter struct {
	// Value is the value of Await.
	Value any

	wake func(*Waiter)
	waiterState
}

// Done has the loop try the request again. It is called once, by any goroutine, and may be called before Await.
func (w *Waiter) Done() { w.wake(w) }

// Waiter returns a waiter for the request. Call Await if, and only if, something will call the waiter's Done. An
// unused waiter is returned again.
func (r *Request) Waiter() *Waiter {
	if r.unused == nil {
		r.unused = r.newWaiter()
	}
	return r.unused
}

// Await parks the request, once TryServe has returned false, until the Done of the waiter that Waiter has returned.
// Then TryServe is called with the request again, and with the waiter as Resumed; other requests of the connection
// wait. No timeout of the server applies, so the wait must be bounded.
func (r *Request) Await(value any) {
	r.awaited, r.unused = r.unused, nil
	r.awaited.Value = value
}

// SendHeader answers with a status and no body. It costs a fraction of what Response does. lines are the header
// lines of the answer, complete but for Date, Content-Length and Connection, each with its CR LF; they may be cut
// anywhere.
func (r *Request) SendHeader(status int, lines ...[]byte) {
	if second := r.Now.Unix(); second != r.headSecond || status != r.headStatus {
		r.headSecond, r.headStatus = second, status
		r.head = appendHead(r.head[:0], status, r.Now)
	}
	r.out = append(r.out, r.head...)
	if !r.IsHead() { // as fasthttp does
		r.out = append(r.out, "Content-Length: 0\r\n"...)
	}
	for _, line := range lines {
		r.out = append(r.out, line...)
	}
	r.sent = true
}

func appendHead(dst []byte, status int, now time.Time) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = fasthttp.AppendUint(dst, status)
	dst = append(dst, ' ')
	dst = append(dst, fasthttp.StatusMessage(status)...)
	dst = append(dst, "\r\nDate: "...)
	dst = fasthttp.AppendHTTPDate(dst, now)
	return append(dst, "\r\n"...)
}

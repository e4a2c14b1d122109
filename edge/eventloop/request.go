package eventloop

import (
	"time"

	"github.com/valyala/fasthttp"
)

// Handler is what a Server serves.
type Handler interface {
	// TryServe answers r, or does nothing that can be seen and returns false. It runs on a loop that has thousands of other
	// connections to serve, so it must not block: no channel, no I/O, no lock that is held during I/O. What needs any of
	// these is not answered here: then Serve gets the request, from its start, on a goroutine.
	TryServe(r *Request) bool
	// Serve answers any request and may take its time.
	Serve(ctx *fasthttp.RequestCtx)
	// Reject answers bytes that are not a request, or one that is too large or too slow. The connection is closed after it.
	Reject(ctx *fasthttp.RequestCtx, err error)
}

// Request is a request on a loop: a GET or HEAD without a body. It belongs to the loop, as does every byte it gives out, and
// is used again once TryServe returns. Its Response is the answer unless SendHeader is called; a body stream, Hijack and
// TimeoutError are for Serve only. ConnID, ConnTime and ConnRequestNum mean nothing, and Time is not set: see Now.
type Request struct {
	*fasthttp.RequestCtx
	// Now is when the loop was told of the request, or a little later.
	Now time.Time
	// Loop is the loop's number, from 0. What loops write to is best kept apart by it.
	Loop int

	out  []byte // the answers of this turn
	sent bool   // SendHeader was called

	// The start of SendHeader's last answer, up to Date: it changes once per second.
	head       []byte
	headStatus int
	headSecond int64
}

// SendHeader answers with a status and no body. It costs a fraction of what Response does. lines are the header lines of
// the answer, complete but for Date, Content-Length and Connection, each with its CR LF; they may be cut anywhere.
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

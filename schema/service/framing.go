package service

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"
)

// FramingError is the error of a request that a server must not answer as if it were any other, since it may end where
// another server, such as a proxy in front of this one, does not see an end.
type FramingError struct {
	Status  int
	Message string // fit for the client
}

func (e *FramingError) Error() string { return e.Message }

var (
	errVersion = &FramingError{fasthttp.StatusHTTPVersionNotSupported, "The request is neither HTTP/1.1 nor HTTP/1.0."}
	errHost    = &FramingError{fasthttp.StatusBadRequest, "The host must not have a user name or password."}
	errCoding  = &FramingError{fasthttp.StatusNotImplemented, "The only transfer coding that is supported is chunked."}
)

var (
	transferEncoding = []byte("Transfer-Encoding")
	contentLength    = []byte("Content-Length")
	connection       = []byte("Connection")
	host             = []byte("Host")
	chunked          = []byte("chunked")
	closeOption      = []byte("close")
)

// CheckFraming returns an error if a request that fasthttp has parsed is of another version than HTTP/1.0 and 1.1, or
// has a transfer coding other than chunked: fasthttp ignores the coding "identity", which RFC 9112 does not define. It
// also returns an error if the host has user information, which fasthttp leaves out. closing says that the connection
// must be closed after the answer: after every error, if the request has both a transfer coding and a length (RFC 9112,
// section 6.1), and if the client asks for it, in any letter case and also in a list (section 9.6): fasthttp recognizes
// only "close".
func CheckFraming(h *fasthttp.RequestHeader) (closing bool, err error) {
	if !h.IsHTTP11() && string(h.Protocol()) != "HTTP/1.0" {
		return true, errVersion
	}
	if target := h.RequestURI(); len(target) > 0 && target[0] != '/' && hasUser(target) {
		return true, errHost
	}
	var coded, long bool
	for raw := h.RawHeaders(); len(raw) > 0; { // as received: fasthttp's header leaves some fields out
		end := bytes.IndexByte(raw, '\n') // each line has one
		line := raw[:end]
		raw = raw[end+1:]
		switch {
		case isOf(line, connection):
			closing = closing || hasClose(line[len(connection)+1:])
		case isOf(line, host) && bytes.IndexByte(line, '@') >= 0:
			return true, errHost
		case isOf(line, contentLength):
			long = true
		case isOf(line, transferEncoding):
			if coded = true; !bytes.EqualFold(bytes.TrimSpace(line[len(transferEncoding)+1:]), chunked) {
				return true, errCoding
			}
		}
	}
	return closing || coded && long, nil
}

// isOf reports whether a header line is of the named field. fasthttp accepts no space before the colon.
func isOf(line, name []byte) bool {
	return len(line) > len(name) && line[len(name)] == ':' && bytes.EqualFold(line[:len(name)], name)
}

// hasUser reports whether a target in absolute form has user information.
func hasUser(target []byte) bool {
	_, rest, _ := bytes.Cut(target, []byte("://"))
	if end := bytes.IndexAny(rest, `/\?#`); end >= 0 {
		rest = rest[:end]
	}
	return bytes.IndexByte(rest, '@') >= 0
}

func hasClose(options []byte) bool {
	for option := range bytes.SplitSeq(options, []byte(",")) {
		if bytes.EqualFold(bytes.TrimSpace(option), closeOption) {
			return true
		}
	}
	return false
}

// CheckRequests makes a server call refuse for requests that it cannot read or that CheckFraming returns an error for,
// and close connections as that says.
func CheckRequests(srv *fasthttp.Server, refuse func(ctx *fasthttp.RequestCtx, err error)) {
	handler := srv.Handler
	srv.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		RenewWriteDeadline(ctx, srv.WriteTimeout)
		refuse(ctx, err)
	}
	srv.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		if closing, _ := CheckFraming(h); closing {
			h.SetConnectionClose() // as if the client had asked for it
		}
		return fasthttp.RequestConfig{}
	}
	refused := func(ctx *fasthttp.RequestCtx) bool {
		if !ctx.Request.Header.ConnectionClose() {
			return false
		}
		_, err := CheckFraming(&ctx.Request.Header)
		if err != nil {
			refuse(ctx, err)
		}
		return err != nil
	}
	srv.ExpectHandler = func(ctx *fasthttp.RequestCtx) int {
		RenewWriteDeadline(ctx, srv.WriteTimeout)
		if refused(ctx) {
			return ctx.Response.StatusCode()
		}
		return fasthttp.StatusContinue
	}
	srv.Handler = func(ctx *fasthttp.RequestCtx) {
		if !refused(ctx) {
			handler(ctx)
		}
	}
}

// RenewWriteDeadline gives the client time for an answer that is not written by the loop of fasthttp's server. That
// sets the deadline before each answer of a handler, but not before 100 Continue and answers to requests that it cannot
// read: these would fail on a connection that has idled for longer than the timeout, and half of a TLS record would be
// sent.
func RenewWriteDeadline(ctx *fasthttp.RequestCtx, timeout time.Duration) {
	_ = ctx.Conn().SetWriteDeadline(time.Now().Add(timeout)) // if it fails, so does the write
}

// refusePlainly answers with the error's text.
func refusePlainly(ctx *fasthttp.RequestCtx, err error) {
	status := fasthttp.StatusBadRequest
	if framing, ok := err.(*FramingError); ok {
		status = framing.Status
	}
	ctx.Error(err.Error()+"\n", status)
}

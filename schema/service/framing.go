package service

import (
	"bytes"

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
	errCoding  = &FramingError{fasthttp.StatusNotImplemented, "The only transfer coding that is supported is chunked."}
)

var (
	transferEncoding = []byte("Transfer-Encoding")
	contentLength    = []byte("Content-Length")
	chunked          = []byte("chunked")
)

// CheckFraming returns an error if a request that fasthttp has parsed is of another version than HTTP/1.0 and 1.1, or has a
// transfer coding other than chunked: fasthttp ignores the coding "identity", which RFC 9112 does not know any more. closing
// says that the connection must be closed after the answer: after every error, and if the request has both a transfer
// coding and a length (RFC 9112, section 6.1).
func CheckFraming(h *fasthttp.RequestHeader) (closing bool, err error) {
	if !h.IsHTTP11() && string(h.Protocol()) != "HTTP/1.0" {
		return true, errVersion
	}
	coding, found := received(h, transferEncoding)
	switch {
	case !found:
		return false, nil
	case !bytes.EqualFold(bytes.TrimSpace(coding), chunked):
		return true, errCoding
	}
	_, found = received(h, contentLength)
	return found, nil
}

// received returns the first line of a field's value as it was received: fasthttp's header leaves some fields out. It accepts no
// space before the colon.
func received(h *fasthttp.RequestHeader, name []byte) (value []byte, found bool) {
	for raw := h.RawHeaders(); len(raw) > len(name); {
		end := bytes.IndexByte(raw, '\n') // each line has one
		if raw[0]|0x20 == name[0]|0x20 && raw[len(name)] == ':' && bytes.EqualFold(raw[:len(name)], name) {
			return raw[len(name)+1 : end], true
		}
		raw = raw[end+1:]
	}
	return nil, false
}

// CheckRequests makes a server call refuse, instead of its handler, for requests that CheckFraming returns an error for, and
// close connections as that says.
func CheckRequests(srv *fasthttp.Server, refuse func(ctx *fasthttp.RequestCtx, err error)) {
	handler := srv.Handler
	srv.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		if closing, _ := CheckFraming(h); closing {
			h.SetConnectionClose() // as if the client had asked for it
		}
		return fasthttp.RequestConfig{}
	}
	srv.Handler = func(ctx *fasthttp.RequestCtx) {
		if ctx.Request.Header.ConnectionClose() {
			if _, err := CheckFraming(&ctx.Request.Header); err != nil {
				refuse(ctx, err)
				return
			}
		}
		handler(ctx)
	}
}

// refusePlainly answers with the error's text.
func refusePlainly(ctx *fasthttp.RequestCtx, err error) {
	status := fasthttp.StatusBadRequest
	if framing, ok := err.(*FramingError); ok {
		status = framing.Status
	}
	ctx.Error(err.Error()+"\n", status)
}

package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// Refusal is the error of a request that cannot be read.
type Refusal struct {
	Status  int
	Message string // for the client
}

func (r *Refusal) Error() string { return r.Message }

// ReadBody reads the whole body of a request from a server that streams bodies. It returns a *Refusal if the body has more than
// limit bytes or cannot be read. If it fails or is not called, the caller must call CloseUnread.
func ReadBody(http *fasthttp.RequestCtx, limit int) error {
	return readBody(http, limit, func(body io.Reader) io.Reader { return body })
}

// readBody is ReadBody with a reader around the body.
func readBody(http *fasthttp.RequestCtx, limit int, around func(io.Reader) io.Reader) error {
	stream := http.RequestBodyStream()
	if stream == nil {
		return nil
	}
	if http.Request.Header.ContentLength() > limit {
		return tooLarge(limit)
	}
	body, err := io.ReadAll(io.LimitReader(around(stream), int64(limit)+1))
	if err != nil {
		return RefusalOf(err)
	}
	if len(body) > limit {
		return tooLarge(limit)
	}
	http.Request.SetBodyRaw(body) // the request has no stream any more
	return nil
}

func tooLarge(limit int) *Refusal {
	return &Refusal{fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d KiB.", limit>>10)}
}

// RefusalOf returns the answer to a request whose reading has failed with err.
func RefusalOf(err error) *Refusal {
	var refusal *Refusal
	var smallBuffer *fasthttp.ErrSmallBuffer
	var timeout interface{ Timeout() bool }
	var framing *service.FramingError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &framing):
		return &Refusal{framing.Status, framing.Message}
	case errors.As(err, &smallBuffer):
		return &Refusal{fasthttp.StatusRequestHeaderFieldsTooLarge, "The header is too large."}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &Refusal{fasthttp.StatusRequestTimeout, "The request took too long to arrive."}
	}
	return &Refusal{fasthttp.StatusBadRequest, "The request is not valid HTTP."}
}

// CloseUnread makes the server close the connection after the answer if the body has not been read, because the server would parse
// the rest of the body as the next request.
func CloseUnread(http *fasthttp.RequestCtx) {
	if http.RequestBodyStream() == nil || http.Request.Header.ContentLength() == 0 {
		return
	}
	CloseGently(http)
}

// CloseGently makes the server close the connection after the answer, which the client gets even while it is still sending.
func CloseGently(http *fasthttp.RequestCtx) {
	http.SetConnectionClose()
	if c, ok := http.Conn().(*conn); ok {
		c.unread.Store(true)
	}
}

// AskFirst makes a server with CheckRequests call wanted before it reads any of a request's body and before it answers 100 Continue. If
// wanted returns false, the server sends the answer that wanted has made and closes the connection. The server would otherwise wait for
// the first byte of each body. Therefore every request with a body passes as one that expects 100 Continue, and the connection leaves
// this answer out for clients that do not.
func AskFirst(srv *fasthttp.Server, wanted func(*fasthttp.RequestCtx) bool) {
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
			CloseGently(http)
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
		if bytes.EqualFold(name, []byte(fasthttp.HeaderExpect)) && bytes.EqualFold(bytes.TrimSpace(value), []byte("100-continue")) {
			return true
		}
	}
	return false
}

var continueAnswer = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// Write leaves out the next 100 Continue if the connection is silent. It may come in parts, at the end of what is written.
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

package admission

import (
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
// limit bytes or cannot be read. Then, as when ReadBody is not called at all, CloseUnread must follow.
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

// RefusalOf returns what to answer when reading a request has failed with err.
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

// CloseUnread makes the server close the connection after the answer if the body has not been read: the rest of it would be
// parsed as the next request.
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

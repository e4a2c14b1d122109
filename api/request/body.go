package request

import (
	"errors"
	"fmt"
	"io"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/turns"
)

// Refusal is the error of a request that cannot be read.
type Refusal struct {
	Status  int
	Message string // for the client
}

func (r *Refusal) Error() string { return r.Message }

// ReadBody reads the whole body of a request from a server that streams bodies. It returns a *Refusal if the body has
// more than limit bytes or cannot be read.
func ReadBody(http *fasthttp.RequestCtx, limit int) error {
	return readBody(http, limit, http.RequestBodyStream())
}

// uncounted is the number of bytes of each body that a Bodies does not count: the bound of connections bounds their
// memory.
const uncounted = 64 << 10

var (
	errBodies         = &Refusal{fasthttp.StatusServiceUnavailable, "Too many large requests at the moment."}
	errBodiesOfClient = &Refusal{fasthttp.StatusTooManyRequests,
		"Too many large requests from this account at the same time."}
)

// NewBodies returns the bound of the bytes that large bodies of requests have in memory, so that many slow uploads
// cannot exhaust it. Bytes count when they arrive.
func NewBodies() *turns.Bound { return turns.NewBound(64<<20, 8<<20) }

// ReadLarge is ReadBody for large bodies. It returns a *Refusal with status 429 or 503 if bodies has no room. The
// caller must call leave after the last use of the body, also after an error.
func ReadLarge(http *fasthttp.RequestCtx, limit int, bodies *turns.Bound, c turns.Client) (leave func(), err error) {
	body := &largeBody{body: http.RequestBodyStream(), bodies: bodies, client: c}
	if body.body == nil {
		return body.leave, nil
	}
	return body.leave, readBody(http, limit, body)
}

// largeBody is a body that is being read or used. It belongs to the goroutine that serves its request.
type largeBody struct {
	body     io.Reader
	bodies   *turns.Bound
	client   turns.Client
	received int
	counted  int
}

// Read returns a *Refusal if there is no room for the bytes.
func (b *largeBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.received += n
	if more := b.received - uncounted - b.counted; more > 0 {
		switch b.bodies.Take(b.client, more) {
		case turns.ErrEach:
			return 0, errBodiesOfClient
		case turns.ErrAll:
			return 0, errBodies
		}
		b.counted += more
	}
	return n, err
}

func (b *largeBody) leave() {
	b.bodies.Leave(b.client, b.counted)
	b.counted = 0
}

// readBody reads the body of a request from stream, which is nil if the request has its body.
func readBody(http *fasthttp.RequestCtx, limit int, stream io.Reader) error {
	if stream == nil {
		return nil
	}
	if http.Request.Header.ContentLength() > limit {
		return tooLarge(limit)
	}
	body, err := io.ReadAll(io.LimitReader(stream, int64(limit)+1))
	if err != nil {
		return RefusalOf(err)
	}
	if len(body) > limit {
		return tooLarge(limit)
	}
	http.Request.SetBodyRaw(body) // which removes the stream
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

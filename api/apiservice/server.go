package apiservice

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/dashboard"
	"linkstream/schema/service"
)

// Limits of what one client, and all clients together, may take of the server.
const (
	maxBodyBytes   = 64 << 10
	maxDrainBytes  = 1 << 20 // read and discarded after a body that is too large
	maxHeaderBytes = 8 << 10
	readTimeout    = 10 * time.Second // for a whole request
	writeTimeout   = 10 * time.Second
	idleTimeout    = 75 * time.Second // longer than the 60 s after which load balancers drop idle connections
)

// MaxConnections is how many connections of clients there may be at the same time.
const MaxConnections = 16 << 10

// site answers the requests of one part of the service.
type site interface {
	Handle(*fasthttp.RequestCtx)
	// Reject answers a request that could not be read.
	Reject(ctx *fasthttp.RequestCtx, status int, message string)
}

// newServer returns a server of the API and the dashboard, and of /healthz if health. Request bodies are streamed, so that
// a request with too large a body still has a header to authenticate and answer it by.
func newServer(api, pages site, health bool, log *slog.Logger) *fasthttp.Server {
	handle := func(ctx *fasthttp.RequestCtx) {
		owner := api
		if dashboard.Owns(ctx) {
			owner = pages
		}
		if err := readBody(ctx); err != nil {
			reject(owner, ctx, err)
			ctx.SetConnectionClose() // the unread rest of the body would be parsed as the next request
			return
		}
		if !health || !service.AnswerHealth(ctx) {
			owner.Handle(ctx)
		}
	}
	return &fasthttp.Server{
		Handler:      handle,
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) { reject(api, ctx, err) },
		Logger:       service.ConnLogger(log),

		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     maxHeaderBytes,
		MaxRequestBodySize: maxBodyBytes,
		StreamRequestBody:  true,
		Concurrency:        MaxConnections,

		SecureErrorLogMessage:        true, // headers hold tokens and sessions
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
	}
}

// readBody reads the whole body. It returns ErrBodyTooLarge if the body has more than maxBodyBytes.
func readBody(ctx *fasthttp.RequestCtx) error {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(stream, maxBodyBytes+1))
	if err != nil {
		return err
	}
	if len(body) > maxBodyBytes {
		// A client that is still sending when the connection closes does not see the answer, so read a body that is
		// only somewhat too large to its end.
		_, _ = io.CopyN(io.Discard, stream, maxDrainBytes)
		return fasthttp.ErrBodyTooLarge
	}
	ctx.Request.SetBodyRaw(body)
	return nil
}

// reject lets owner answer a request that could not be read because of err.
func reject(owner site, ctx *fasthttp.RequestCtx, err error) {
	var smallBuffer *fasthttp.ErrSmallBuffer
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		owner.Reject(ctx, fasthttp.StatusRequestEntityTooLarge, "The body is larger than 64 KiB.")
	case errors.As(err, &smallBuffer):
		owner.Reject(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, "The header is too large.")
	case errors.As(err, &timeout) && timeout.Timeout():
		owner.Reject(ctx, fasthttp.StatusRequestTimeout, "The request took too long to arrive.")
	default:
		owner.Reject(ctx, fasthttp.StatusBadRequest, "The request is not valid HTTP.")
	}
}

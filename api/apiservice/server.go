package apiservice

import (
	"io"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/dashboard"
	"linkstream/schema/service"
)

// Limits of what one client, and all of them, may take of the server.
const (
	maxBodyBytes   = 64 << 10
	maxDrainBytes  = 1 << 20 // of a body that is too large
	maxHeaderBytes = 8 << 10
	maxConnections = 16 << 10
	readTimeout    = 10 * time.Second // of a whole request, however slowly its bytes come in
	writeTimeout   = 10 * time.Second
	idleTimeout    = 75 * time.Second // more than the minute after which load balancers drop idle connections
)

// site answers requests.
type site interface {
	Handle(*fasthttp.RequestCtx)
	Reject(*fasthttp.RequestCtx, error) // answers one that could not be read
}

// newServer returns a server of the API, the dashboard and the operator's endpoints. Bodies are streamed, so that a
// request whose body is too large has a header to be answered by.
func newServer(api, pages site, operator *service.Endpoints, log *slog.Logger) *fasthttp.Server {
	handle := func(ctx *fasthttp.RequestCtx) {
		of := api
		if dashboard.Owns(ctx) {
			of = pages
		}
		if err := readBody(ctx); err != nil {
			of.Reject(ctx, err)
			ctx.SetConnectionClose() // what was not read would be taken for the next request
			return
		}
		if !operator.Handle(ctx) {
			of.Handle(ctx)
		}
	}
	return &fasthttp.Server{
		Handler:      handle,
		ErrorHandler: api.Reject,
		Logger:       service.ConnLogger(log),

		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     maxHeaderBytes,
		MaxRequestBodySize: maxBodyBytes,
		StreamRequestBody:  true,
		Concurrency:        maxConnections,

		SecureErrorLogMessage:        true, // headers hold tokens and sessions
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
	}
}

// readBody reads the body to its end. ErrBodyTooLarge if it has more than maxBodyBytes.
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
		// A client that is still sending when the connection is closed does not see the answer, so a body that is
		// somewhat too large is read to its end.
		_, _ = io.CopyN(io.Discard, stream, maxDrainBytes)
		return fasthttp.ErrBodyTooLarge
	}
	ctx.Request.SetBodyRaw(body)
	return nil
}

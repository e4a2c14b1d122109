package redirect

import (
	"errors"
	"log/slog"
	"net"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// maxBodyBytes bounds the body of a request, which is read and ignored.
const maxBodyBytes = 1 << 10

// NewServer returns a server that calls h. It limits the size of requests and the number of connections. It has no
// timeouts: the listener that it serves must apply cfg.Limits.
func NewServer(cfg Config, h *Handler, log *slog.Logger) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:      h.Serve,
		ErrorHandler: h.reject,
		Logger:       service.ConnLogger(log),

		ReadBufferSize:     cfg.MaxHeaderBytes,
		MaxRequestBodySize: maxBodyBytes,
		Concurrency:        cfg.MaxConnections,

		SecureErrorLogMessage:        true, // headers may hold secrets
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
	}
}

// reject answers a request that cannot be read. The server then closes the connection.
func (h *Handler) reject(ctx *fasthttp.RequestCtx, err error) {
	var tooLarge *fasthttp.ErrSmallBuffer
	var netErr net.Error
	switch {
	case errors.As(err, &tooLarge):
		h.pages.headerTooLarge.answer(ctx)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		h.pages.bodyTooLarge.answer(ctx)
	case errors.As(err, &netErr) && netErr.Timeout():
		h.pages.timeout.answer(ctx)
	default:
		h.pages.badRequest.answer(ctx)
	}
}

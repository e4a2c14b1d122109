package redirect

import (
	"errors"
	"log/slog"
	"net"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// maxBodyBytes is for clients that send a body with their GET; none is of use.
const maxBodyBytes = 1 << 10

// NewServer returns a server of h that bounds what one client, and all of them, may take: bytes and connections. Their
// time is bounded by the Listener that it serves.
func NewServer(cfg Config, h *Handler, log *slog.Logger) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:      h.Serve,
		ErrorHandler: h.reject,
		Logger:       service.ConnLogger(log),

		ReadBufferSize:     cfg.MaxHeaderBytes,
		MaxRequestBodySize: maxBodyBytes,
		Concurrency:        cfg.MaxConnections,

		SecureErrorLogMessage:        true, // headers are nobody's business
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
	}
}

// reject answers a request that could not be read. The connection is closed after it.
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

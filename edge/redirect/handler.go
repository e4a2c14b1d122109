// Package redirect answers requests for short links: it looks up the link, records the click, and sends a redirect.
//
//	request ─▶ Handler ─▶ resolve.Resolver ─▶ spool.Append ─▶ 302
//	                          │
//	                          ├─ CodeNotFound ─────▶ 404
//	                          ├─ stopped ──────────▶ 410
//	                          ├─ ErrTooMany ───────▶ 429 with Retry-After
//	                          └─ CodeUnavailable ──▶ 503 with Retry-After
//
// A request that can be answered from memory is answered on an event loop, by Handler.TryServe, and so is one for a link that has to
// be looked up, once it was. Handler.Serve answers every other one, and those of servers without loops.
//
// The server writes an answer after the handler has returned. Therefore every click whose redirect was answered is in the
// spool, unless the spool was full. HEAD requests and prefetches are redirected but are not clicks.
package redirect

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/edge/resolve"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/service"
)

// Handler answers HTTP requests. It is safe for concurrent use.
type Handler struct {
	instant
	resolver  *resolve.Resolver
	spool     *spool.Spool
	challenge func(*fasthttp.RequestCtx) bool
}

// NewHandler returns a handler that records clicks in spool. It registers its metrics with set.
func NewHandler(
	cfg Config, resolver *resolve.Resolver, spool *spool.Spool, set *metrics.Set, log *slog.Logger,
) *Handler {
	service.Describe(set, "linkstream_edge_answers_total", "Answers to requests for short links, by status.")
	service.Describe(set, "linkstream_edge_uncounted_total", "Redirects that are not clicks, by reason.")
	return &Handler{
		resolver:  resolver,
		spool:     spool,
		challenge: cfg.Challenge,
		instant: instant{
			cached:  resolver.Cached(),
			lookups: resolver.Lookups(),
			clicks:  spool.Instant(),
			proxies: cfg.TrustedProxies,
			health:  cfg.PublicHealth,
			pages:   newPages(),
			log:     log,

			forwarded: sync.Pool{New: func() any { return new(forwardBuffer) }},

			redirected:  set.NewCounter(`linkstream_edge_answers_total{status="302"}`),
			previewed:   set.NewCounter(`linkstream_edge_answers_total{status="200"}`),
			notFound:    set.NewCounter(`linkstream_edge_answers_total{status="404"}`),
			gone:        set.NewCounter(`linkstream_edge_answers_total{status="410"}`),
			tooMany:     set.NewCounter(`linkstream_edge_answers_total{status="429"}`),
			failed:      set.NewCounter(`linkstream_edge_answers_total{status="500"}`),
			unavailable: set.NewCounter(`linkstream_edge_answers_total{status="503"}`),
			heads:       set.NewCounter(`linkstream_edge_uncounted_total{reason="head"}`),
			prefetches:  set.NewCounter(`linkstream_edge_uncounted_total{reason="prefetch"}`),
			seconds: service.NewHistogram(set, "linkstream_edge_answer_seconds",
				"Seconds from a request's arrival until its answer is ready, of one request in 64."),
		},
	}
}

// Serve answers one request. It does not allocate for a redirect to a cached link.
func (h *Handler) Serve(ctx *fasthttp.RequestCtx) {
	h.answer(ctx)
	h.time(ctx.Time())
}

func (h *Handler) answer(ctx *fasthttp.RequestCtx) {
	answered := true
	defer h.recover(ctx, &answered)
	if !ctx.IsGet() && !ctx.IsHead() {
		h.pages.badMethod.answer(ctx)
		ctx.Response.Header.Set("Allow", "GET, HEAD")
		return
	}
	if h.challenge != nil && isChallenge(ctx.Path()) && h.challenge(ctx) {
		return
	}
	if !h.fixed(ctx) {
		if hash := ctx.Path()[1:]; isPreview(hash) {
			h.preview(ctx, hash[:len(hash)-1])
		} else {
			h.follow(ctx, hash)
		}
	}
}

// follow answers a request for a short link.
func (h *Handler) follow(ctx *fasthttp.RequestCtx, hash []byte) {
	client := h.client(ctx)
	target, err := h.resolver.Resolve(ctx.Host(), hash, client, ctx.Time())
	switch {
	case err != nil:
		h.answerError(ctx, err, client, ctx.Time())
	case len(target.Location) > 0:
		h.redirect(ctx, target, client)
	default:
		h.answerGone(ctx, target.Stop)
	}
}

// isPreview reports whether a path without its slash asks for the page about a link: its hash and a plus sign.
func isPreview(path []byte) bool { return len(path) > 1 && path[len(path)-1] == '+' }

// preview shows where a link leads. It is no click.
func (h *Handler) preview(ctx *fasthttp.RequestCtx, hash []byte) {
	client := h.client(ctx)
	target, link, err := h.resolver.Preview(ctx.Host(), hash, client, ctx.Time())
	switch {
	case err != nil:
		h.answerError(ctx, err, client, ctx.Time())
	case len(target.Location) == 0:
		h.answerGone(ctx, target.Stop)
	default:
		h.previewed.Inc()
		h.pages.preview(target, link).answer(ctx)
	}
}

// Header names in canonical form, which fasthttp does not have to normalize.
var (
	headerLocation     = []byte("Location")
	headerCacheControl = []byte("Cache-Control")
	privateNoStore     = []byte("private, no-store") // a cached redirect would hide the next click
)

// redirect records the click, if it is one, and answers with the link's location.
func (h *Handler) redirect(ctx *fasthttp.RequestCtx, target resolve.Target, client netip.Addr) {
	var v visitor
	v.read(&ctx.Request.Header)
	if uncounted := h.uncounted(&v); uncounted == nil {
		var network [schema.MaxNetworkLen]byte
		click := v.click(network[:0], target, client, ctx.Time())
		h.spool.Append(ctx.ConnID(), &click)
	} else {
		uncounted.Inc()
	}
	h.redirected.Inc()
	ctx.SetStatusCode(fasthttp.StatusFound)
	if query := ctx.URI().QueryString(); target.Forward && len(query) > 0 {
		buffer := h.forwarded.Get().(*forwardBuffer)
		defer h.forwarded.Put(buffer) // the header has a copy
		target.Location = buffer.forward(target.Location, query)
	}
	ctx.Response.Header.SetCanonical(headerLocation, target.Location)
	ctx.Response.Header.SetCanonical(headerCacheControl, privateNoStore)
}

// Reject answers a request that cannot be read. The server then closes the connection.
func (h *Handler) Reject(ctx *fasthttp.RequestCtx, err error) {
	var tooLarge *fasthttp.ErrSmallBuffer
	var netErr net.Error
	var framing *service.FramingError
	switch {
	case errors.As(err, &framing) && framing.Status == fasthttp.StatusHTTPVersionNotSupported:
		h.pages.badVersion.answer(ctx)
	case errors.As(err, &framing):
		h.pages.badCoding.answer(ctx)
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

// Package redirect answers requests for short links: it looks up the link, records the click, and sends a redirect.
//
//	request ─▶ Handler ─▶ resolve.Resolver ─▶ spool.Append ─▶ 302
//	                          │
//	                          ├─ CodeNotFound ─────▶ 404
//	                          ├─ inactive ─────────▶ 410
//	                          └─ CodeUnavailable ──▶ 503 with Retry-After
//
// The server writes an answer after the handler has returned. Therefore every click whose redirect was answered is in the
// spool, unless the spool was full. HEAD requests and prefetches are redirected but are not clicks.
package redirect

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/edge/resolve"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/clientaddr"
	"linkstream/schema/service"
)

// Handler answers HTTP requests. It is safe for concurrent use.
type Handler struct {
	resolver *resolve.Resolver
	spool    *spool.Spool
	proxies  clientaddr.Proxies
	health   bool // whether /healthz is answered
	pages    *pages
	log      *slog.Logger

	redirected, notFound, gone, failed, unavailable *metrics.Counter
	heads, prefetches                               *metrics.Counter
	seconds                                         *service.Histogram
}

// NewHandler returns a handler that records clicks in spool. It registers its metrics with set.
func NewHandler(
	cfg Config, resolver *resolve.Resolver, spool *spool.Spool, set *metrics.Set, log *slog.Logger,
) *Handler {
	service.Describe(set, "linkstream_edge_answers_total", "Answers to requests for short links, by status.")
	service.Describe(set, "linkstream_edge_uncounted_total", "Redirects that are not clicks, by reason.")
	return &Handler{
		resolver: resolver,
		spool:    spool,
		proxies:  cfg.TrustedProxies,
		health:   cfg.PublicHealth,
		pages:    newPages(),
		log:      log,

		redirected:  set.NewCounter(`linkstream_edge_answers_total{status="302"}`),
		notFound:    set.NewCounter(`linkstream_edge_answers_total{status="404"}`),
		gone:        set.NewCounter(`linkstream_edge_answers_total{status="410"}`),
		failed:      set.NewCounter(`linkstream_edge_answers_total{status="500"}`),
		unavailable: set.NewCounter(`linkstream_edge_answers_total{status="503"}`),
		heads:       set.NewCounter(`linkstream_edge_uncounted_total{reason="head"}`),
		prefetches:  set.NewCounter(`linkstream_edge_uncounted_total{reason="prefetch"}`),
		seconds: service.NewHistogram(set, "linkstream_edge_answer_seconds",
			"Seconds from a request's arrival until its answer is ready, of one request in 64."),
	}
}

// unsampled are the bits of a request's time that are zero in the requests that are timed, one in 64. The lowest bits of
// a clock in nanoseconds are as good as random. So most requests do without a second reading of the clock and without a
// counter that all processors share.
const unsampled = 1<<6 - 1

// Serve answers one request. It does not allocate for a redirect to a cached link.
func (h *Handler) Serve(ctx *fasthttp.RequestCtx) {
	h.answer(ctx)
	if began := ctx.Time(); began.Nanosecond()&unsampled == 0 && !began.IsZero() {
		h.seconds.Observe(time.Since(began))
	}
}

func (h *Handler) answer(ctx *fasthttp.RequestCtx) {
	defer h.recover(ctx)
	if !ctx.IsGet() && !ctx.IsHead() {
		h.pages.badMethod.answer(ctx)
		ctx.Response.Header.Set("Allow", "GET, HEAD")
		return
	}
	if h.health && service.AnswerHealth(ctx) {
		return
	}
	switch path := ctx.Path(); string(path) {
	case "/":
		h.pages.front.answer(ctx)
	case "/robots.txt":
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString("User-agent: *\nAllow: /$\nDisallow: /\n")
	case "/favicon.ico":
		ctx.Response.Header.Set("Cache-Control", "public, max-age=86400")
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	default:
		h.follow(ctx, path[1:])
	}
}

// recover answers a request whose handler panicked, so that a panic does not end the process.
func (h *Handler) recover(ctx *fasthttp.RequestCtx) {
	if cause := recover(); cause != nil {
		h.failed.Inc()
		h.log.Error("request failed", "error", fmt.Sprintf("panic: %v\n%s", cause, debug.Stack()))
		ctx.Response.Reset()
		h.pages.failed.answer(ctx)
	}
}

// follow answers a request for a short link.
func (h *Handler) follow(ctx *fasthttp.RequestCtx, hash []byte) {
	target, err := h.resolver.Resolve(ctx.Host(), hash, ctx.Time())
	switch {
	case err == nil && len(target.Location) > 0:
		h.redirect(ctx, target)
	case err == nil:
		h.gone.Inc()
		h.pages.gone.answer(ctx)
	case schema.ErrorCode(err) == schema.CodeNotFound:
		h.notFound.Inc()
		h.pages.notFound.answer(ctx)
	default:
		h.unavailable.Inc()
		h.pages.unavailable.answer(ctx)
		ctx.Response.Header.Set("Retry-After", "1")
	}
}

// Header names in canonical form, which fasthttp does not have to normalize.
var (
	headerLocation     = []byte("Location")
	headerCacheControl = []byte("Cache-Control")
	privateNoStore     = []byte("private, no-store") // a cached redirect would hide the next click

	purposeHeaders  = [][]byte{[]byte("Sec-Purpose"), []byte("Purpose"), []byte("X-Purpose"), []byte("X-Moz")}
	purposePrefetch = []byte("prefetch")
)

// redirect records the click and answers with the link's location.
func (h *Handler) redirect(ctx *fasthttp.RequestCtx, target resolve.Target) {
	switch {
	case ctx.IsHead():
		h.heads.Inc()
	case isPrefetch(&ctx.Request.Header):
		h.prefetches.Inc()
	default:
		h.record(ctx, target)
	}
	h.redirected.Inc()
	ctx.SetStatusCode(fasthttp.StatusFound)
	ctx.Response.Header.SetCanonical(headerLocation, target.Location)
	ctx.Response.Header.SetCanonical(headerCacheControl, privateNoStore)
}

// isPrefetch reports whether a browser loads the page in advance, without a click.
func isPrefetch(header *fasthttp.RequestHeader) bool {
	for _, name := range purposeHeaders {
		if bytes.Contains(header.PeekCanonical(name), purposePrefetch) {
			return true
		}
	}
	return false
}

// record appends a click to the spool.
func (h *Handler) record(ctx *fasthttp.RequestCtx, target resolve.Target) {
	peer, _ := netip.AddrFromSlice(ctx.RemoteIP())
	var network [schema.MaxNetworkLen]byte
	h.spool.Append(ctx.ConnID(), &schema.Click{
		LinkID:    target.LinkID,
		AccountID: target.AccountID,
		ClickedAt: ctx.Time(),
		UserAgent: ctx.UserAgent(),
		Referrer:  ctx.Referer(),
		Network:   appendNetwork(network[:0], h.proxies.Client(peer, &ctx.Request.Header)),
	})
}

// appendNetwork appends the network of a client's address, which is all that a click keeps of it: the /24 of an IPv4
// address, the /48 of an IPv6 address, nothing if the address is unknown.
func appendNetwork(dst []byte, client netip.Addr) []byte {
	switch {
	case !client.IsValid() || client.IsUnspecified():
		return dst
	case client.Is4():
		a := client.As4()
		return append(dst, a[:3]...)
	default:
		a := client.As16()
		return append(dst, a[:6]...)
	}
}

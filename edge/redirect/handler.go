// Package redirect answers requests for short links: it looks up the link, records the click, and sends a redirect.
//
//	request ─▶ Handler.answer ─▶ resolve.Resolver ─▶ Handler.follow ─▶ spool ─▶ 302
//	                                 │                    │
//	                                 ├─ CodeNotFound ─────┼─▶ 404
//	                                 ├─ stopped ──────────┼─▶ 410
//	                                 ├─ password ─────────┼─▶ 200, the page that asks for it
//	                                 ├─ ErrTooMany ───────┼─▶ 429 with Retry-After
//	                                 └─ CodeUnavailable ──┴─▶ 503 with Retry-After
//
// One function, Handler.answer, decides about every request (answer.go). On an event loop it runs as TryServe, which
// parks a request that has to wait for a look-up, and leaves a request that may wait for anything else to Serve. On a
// goroutine, Serve is the same and waits.
//
// The server writes an answer after the handler has returned. Therefore every click whose redirect was answered is in
// the spool, unless the spool was full. HEAD requests and prefetches are redirected but are not clicks.
package redirect

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/edge/eventloop"
	"linkstream/edge/limit"
	"linkstream/edge/password"
	"linkstream/edge/resolve"
	"linkstream/edge/spool"
	"linkstream/edge/visitorhash"
	"linkstream/schema/clientaddr"
	"linkstream/schema/enrich"
	"linkstream/schema/service"
)

// Handler answers HTTP requests. It is safe for concurrent use.
type Handler struct {
	resolver  *resolve.Resolver
	spool     *spool.Spool
	clicks    spool.Instant // of spool, for event loops
	challenge func(*fasthttp.RequestCtx) bool
	passwords *password.Verifier
	limits    *limit.Limits
	visitors  *visitorhash.Keys
	secure    bool // cookies are for HTTPS only
	proxies   clientaddr.Proxies
	health    bool // whether /healthz is answered
	robots    string
	contacts  service.Contacts
	pages     *pages
	log       *slog.Logger

	forwarded sync.Pool // of *forwardBuffer
	visits    sync.Pool // of *visit

	lastBrand atomic.Pointer[shownBrand]

	unchecked atomic.Bool // the last password could not be checked

	redirected, previewed, notFound, gone, tooMany, failed, unavailable *metrics.Counter
	heads, prefetches                                                   *metrics.Counter
	seconds                                                             *service.Histogram
	sites                                                               siteCounters
}

// NewHandler returns a handler that records clicks in spool. It registers its metrics with set.
func NewHandler(
	cfg Config, resolver *resolve.Resolver, spool *spool.Spool, set *metrics.Set, log *slog.Logger,
) *Handler {
	if cfg.Robots.name == "" {
		_ = cfg.Robots.Set(robotsAllow) // needs no file
	}
	if cfg.Visitors == nil {
		cfg.Visitors = visitorhash.New(nil, log)
	}
	service.Describe(set, "linkstream_edge_answers_total", "Answers to requests for short links, by status.")
	service.Describe(set, "linkstream_edge_uncounted_total", "Redirects that are not clicks, by reason.")
	return &Handler{
		resolver:  resolver,
		spool:     spool,
		clicks:    spool.Instant(),
		challenge: cfg.Challenge,
		passwords: cfg.Passwords,
		limits:    cfg.Limits,
		visitors:  cfg.Visitors,
		secure:    cfg.Secure,
		proxies:   cfg.TrustedProxies,
		health:    cfg.PublicHealth,
		robots:    cfg.Robots.text,
		contacts:  cfg.Contacts,
		pages:     newPages(),
		log:       log,

		forwarded: sync.Pool{New: func() any { return new(forwardBuffer) }},
		visits:    sync.Pool{New: func() any { return &visit{enricher: enrich.NewSmall(cfg.Countries)} }},

		redirected:  set.NewCounter(`linkstream_edge_answers_total{status="302"}`),
		previewed:   set.NewCounter(`linkstream_edge_answers_total{status="200"}`),
		notFound:    set.NewCounter(`linkstream_edge_answers_total{status="404"}`),
		gone:        set.NewCounter(`linkstream_edge_answers_total{status="410"}`),
		tooMany:     set.NewCounter(`linkstream_edge_answers_total{status="429"}`),
		failed:      set.NewCounter(`linkstream_edge_answers_total{status="500"}`),
		unavailable: set.NewCounter(`linkstream_edge_answers_total{status="503"}`),
		heads:       set.NewCounter(`linkstream_edge_uncounted_total{reason="head"}`),
		prefetches:  set.NewCounter(`linkstream_edge_uncounted_total{reason="prefetch"}`),
		sites:       newSiteCounters(set),
		seconds: service.NewHistogram(set, "linkstream_edge_answer_seconds",
			"Seconds from a request's arrival until its answer is ready, of one request in 64."),
	}
}

// TryServe answers a request from memory, or returns false: see eventloop.Handler.
func (h *Handler) TryServe(r *eventloop.Request) bool {
	q := request{RequestCtx: r.RequestCtx, now: r.Now, client: h.client(r.RequestCtx), loop: r}
	q.lane = uint64(r.Loop) // each loop fills a lane of its own
	answered := h.answer(&q)
	if answered {
		h.time(r.Now)
	}
	return answered
}

// Serve answers one request. It does not allocate for a redirect to a cached link.
func (h *Handler) Serve(ctx *fasthttp.RequestCtx) {
	h.answer(&request{RequestCtx: ctx, now: ctx.Time(), lane: ctx.ConnID(), client: h.client(ctx)})
	h.time(ctx.Time())
}

// client returns the address of the client, the zero Addr if it is unknown.
func (h *Handler) client(ctx *fasthttp.RequestCtx) netip.Addr {
	peer, _ := netip.AddrFromSlice(ctx.RemoteIP())
	return h.proxies.Client(peer, &ctx.Request.Header)
}

// unsampled are the bits of a request's time that are zero in the requests that are timed, one in 64. The lowest bits
// of a clock in nanoseconds are as good as random. So most requests need neither a second reading of the clock nor a
// counter that all CPUs share.
const unsampled = 1<<6 - 1

// time records how long an answer took, of one request in 64.
func (h *Handler) time(began time.Time) {
	if began.Nanosecond()&unsampled == 0 && !began.IsZero() {
		h.seconds.Observe(time.Since(began))
	}
}

// Reject answers a request that cannot be read. The server then closes the connection.
func (h *Handler) Reject(ctx *fasthttp.RequestCtx, err error) {
	var tooLarge *fasthttp.ErrSmallBuffer
	var netErr net.Error
	var framing *service.FramingError
	switch {
	case errors.As(err, &framing) && framing.Status == fasthttp.StatusHTTPVersionNotSupported:
		h.pages.badVersion.answer(ctx, nameless)
	case errors.As(err, &framing) && framing.Status == fasthttp.StatusNotImplemented:
		h.pages.badCoding.answer(ctx, nameless)
	case errors.As(err, &tooLarge):
		h.pages.headerTooLarge.answer(ctx, nameless)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		h.pages.bodyTooLarge.answer(ctx, nameless)
	case errors.As(err, &netErr) && netErr.Timeout():
		h.pages.timeout.answer(ctx, nameless)
	default:
		h.pages.badRequest.answer(ctx, nameless)
	}
}

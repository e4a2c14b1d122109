package redirect

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/edge/eventloop"
	"linkstream/edge/resolve"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/clientaddr"
	"linkstream/schema/service"
)

// instant is the part of a Handler that answers from memory. It may run on event loops, for it has no way to what a request
// might have to wait for: to the link store, whose look-ups it only begins, and to a spool that creates a segment.
type instant struct {
	cached  *resolve.Cached
	lookups resolve.Lookups
	clicks  spool.Instant
	proxies clientaddr.Proxies
	health  bool // whether /healthz is answered
	pages   *pages
	log     *slog.Logger

	forwarded sync.Pool // of *forwardBuffer

	redirected, previewed, notFound, gone, tooMany, failed, unavailable *metrics.Counter
	heads, prefetches                                                   *metrics.Counter
	seconds                                                             *service.Histogram
}

// TryServe answers a request from memory, or returns false: see eventloop.Handler.
func (i *instant) TryServe(r *eventloop.Request) bool {
	if !i.answer(r) {
		return false
	}
	i.time(r.Now)
	return true
}

// unsampled are the bits of a request's time that are zero in the requests that are timed, one in 64. The lowest bits of
// a clock in nanoseconds are as good as random. So most requests do without a second reading of the clock and without a
// counter that all processors share.
const unsampled = 1<<6 - 1

// time records how long an answer took, of one request in 64.
func (i *instant) time(began time.Time) {
	if began.Nanosecond()&unsampled == 0 && !began.IsZero() {
		i.seconds.Observe(time.Since(began))
	}
}

func (i *instant) answer(r *eventloop.Request) (answered bool) {
	defer i.recover(r.RequestCtx, &answered)
	if i.fixed(r.RequestCtx) {
		return true
	}
	hash := r.Path()[1:]
	switch {
	case isPreview(hash): // a flood of pages ends here
		wait := i.cached.WaitPreview(i.client(r.RequestCtx), r.Now)
		if wait > 0 {
			i.refuse(r.RequestCtx, wait)
		}
		return wait > 0
	case isChallenge(r.Path()):
		return false
	}
	if r.Resumed != nil {
		return i.resume(r)
	}
	target, err := i.cached.Resolve(r.Host(), hash, r.Now)
	switch {
	case err == resolve.ErrNotCached:
		return i.lookUp(r, hash)
	case err == resolve.ErrOutdated:
		if lookup, ok := i.lookups.Refresh(r.Host(), hash, i.client(r.RequestCtx), r.Now, r.Waiter()); ok {
			r.Await(lookup)
		}
		return false
	case err != nil: // there is no such link
		i.answerError(r.RequestCtx, err, netip.Addr{}, r.Now)
		return true
	}
	return i.follow(r, target)
}

// lookUp begins the look-up of a request's link, and has the request wait for it. A flood of unknown links ends here.
func (i *instant) lookUp(r *eventloop.Request, hash []byte) (answered bool) {
	client := i.client(r.RequestCtx)
	if wait := i.cached.Wait(client, r.Now); wait > 0 {
		i.refuse(r.RequestCtx, wait)
		return true
	}
	if lookup, ok := i.lookups.Begin(r.Host(), hash, client, r.Now, r.Waiter()); ok {
		r.Await(lookup)
	}
	return false
}

// resume answers a request whose link was looked up.
func (i *instant) resume(r *eventloop.Request) bool {
	target, err := i.lookups.Result(r.Resumed.Value.(resolve.Lookup), r.Now)
	switch {
	case err == resolve.ErrOutdated:
		return false
	case err != nil:
		i.answerError(r.RequestCtx, err, netip.Addr{}, r.Now)
		return true
	}
	return i.follow(r, target)
}

// follow answers a request for a link that was found.
func (i *instant) follow(r *eventloop.Request, target resolve.Target) bool {
	if len(target.Location) == 0 {
		i.answerGone(r.RequestCtx, target.Stop)
		return true
	}
	return i.redirect(r, target)
}

// answerError says why a client's link was not found.
func (i *instant) answerError(ctx *fasthttp.RequestCtx, err error, client netip.Addr, now time.Time) {
	switch {
	case schema.ErrorCode(err) == schema.CodeNotFound:
		i.notFound.Inc()
		i.pages.notFound.answer(ctx)
	case err == resolve.ErrTooMany:
		i.refuse(ctx, i.cached.Wait(client, now))
	default:
		i.unavailable.Inc()
		i.pages.unavailable.answer(ctx)
		ctx.Response.Header.Set("Retry-After", "1")
	}
}

var challengePath = []byte("/.well-known/acme-challenge/")

// isChallenge reports whether a path is one by which an authority validates a host (RFC 8555, section 8.3).
func isChallenge(path []byte) bool {
	return len(path) > 1 && path[1] == '.' && bytes.HasPrefix(path, challengePath) // most paths are told by one byte
}

// answerGone says why a link does not redirect.
func (i *instant) answerGone(ctx *fasthttp.RequestCtx, stop resolve.Stop) {
	i.gone.Inc()
	switch stop {
	case resolve.TakenDown:
		i.pages.takenDown.answer(ctx)
	case resolve.Unsafe:
		i.pages.unsafe.answer(ctx)
	case resolve.Deleted:
		i.pages.deleted.answer(ctx)
	case resolve.Expired:
		i.pages.expired.answer(ctx)
	default:
		i.pages.gone.answer(ctx)
	}
}

// The header lines of a redirect, the location between them.
var (
	beforeLocation = []byte("Location: ")
	afterLocation  = []byte("\r\nCache-Control: private, no-store\r\n")
)

// redirect records the click, if it is one, and answers with the link's location.
func (i *instant) redirect(r *eventloop.Request, target resolve.Target) bool {
	var v visitor
	v.read(&r.Request.Header)
	if !i.record(r, &v, target, i.client(r.RequestCtx)) {
		return false
	}
	i.send(r, target, r.URI().QueryString())
	return true
}

// send redirects to a target, with the query of the request if that is forwarded.
func (i *instant) send(r *eventloop.Request, target resolve.Target, query []byte) {
	if target.Forward && len(query) > 0 {
		buffer := i.forwarded.Get().(*forwardBuffer)
		defer i.forwarded.Put(buffer) // r has a copy
		target.Location = buffer.forward(target.Location, query)
	}
	r.SendHeader(fasthttp.StatusFound, beforeLocation, target.Location, afterLocation)
}

// record records the click of a visitor, if it is one, and counts the redirect. It returns false if that would have to wait.
func (i *instant) record(r *eventloop.Request, v *visitor, target resolve.Target, client netip.Addr) bool {
	if uncounted := i.uncounted(v); uncounted == nil {
		var network [schema.MaxNetworkLen]byte
		click := v.click(network[:0], target, client, r.Now)
		if !i.clicks.Append(uint64(r.Loop), &click) { // each loop fills a lane of its own
			return false
		}
	} else {
		uncounted.Inc()
	}
	i.redirected.Inc()
	return true
}

// Paths that are the same on every host.
const (
	pathFront, pathRobots, pathIcon, pathHealth = "/", "/robots.txt", "/favicon.ico", "/healthz"
)

// isFixed reports whether a path may be one that is the same on every host.
func isFixed(path []byte) bool {
	switch string(path) {
	case pathFront, pathRobots, pathIcon, pathHealth:
		return true
	}
	return false
}

// fixed answers a request for a path that is the same on every host, and reports whether it is one.
func (i *instant) fixed(ctx *fasthttp.RequestCtx) bool {
	switch string(ctx.Path()) {
	case pathFront:
		i.pages.front.answer(ctx)
	case pathRobots:
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString("User-agent: *\nAllow: /$\nDisallow: /\n")
	case pathIcon:
		ctx.Response.Header.Set("Cache-Control", "public, max-age=86400")
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	case pathHealth:
		return i.health && service.AnswerHealth(ctx)
	default:
		return false
	}
	return true
}

// recover answers a request whose handler panicked, so that a panic does not end the process.
func (i *instant) recover(ctx *fasthttp.RequestCtx, answered *bool) {
	if cause := recover(); cause != nil {
		i.failed.Inc()
		i.log.Error("request failed", "error", fmt.Sprintf("panic: %v\n%s", cause, debug.Stack()))
		ctx.Response.Reset()
		i.pages.failed.answer(ctx)
		*answered = true
	}
}

// uncounted returns nil if a visitor's request is a click, and otherwise the counter of its kind.
func (i *instant) uncounted(v *visitor) *metrics.Counter {
	switch {
	case v.head:
		return i.heads
	case v.prefetch:
		return i.prefetches
	}
	return nil
}

// refuse answers a client that has asked for too many unknown links, or pages about links.
func (i *instant) refuse(ctx *fasthttp.RequestCtx, wait time.Duration) {
	i.tooMany.Inc()
	i.pages.tooMany.answer(ctx)
	ctx.Response.Header.Set("Retry-After", strconv.Itoa(int(max(1, (wait+time.Second-1)/time.Second))))
}

// client returns the address of the client, the zero Addr if it is unknown.
func (i *instant) client(ctx *fasthttp.RequestCtx) netip.Addr {
	peer, _ := netip.AddrFromSlice(ctx.RemoteIP())
	return i.proxies.Client(peer, &ctx.Request.Header)
}

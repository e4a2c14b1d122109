package redirect

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/edge/eventloop"
	"linkstream/edge/limit"
	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/service"
)

// request is a request on an event loop or on a goroutine.
type request struct {
	*fasthttp.RequestCtx
	now    time.Time
	path   []byte             // see readPath; set by answer
	rest   []byte             // of the path, behind the link's name, as it was sent; set by cutRest
	lane   uint64             // of the spool
	client netip.Addr         // the zero Addr if it is unknown
	loop   *eventloop.Request // nil on a goroutine, which may wait
}

// answer decides what a request is answered. It is the only place that does, for event loops and goroutines. It returns
// false on an event loop if the request has to wait for a look-up (Request.Await), or if a goroutine has to answer it.
func (h *Handler) answer(q *request) (answered bool) {
	defer h.recover(q.RequestCtx, &answered)
	q.path = readPath(q.URI().PathOriginal())
	switch {
	case !q.IsGet() && !q.IsHead():
		return h.otherMethod(q)
	case h.fixed(q.RequestCtx):
		return true
	case isWellKnown(q.Path()):
		if q.loop != nil {
			return false
		}
		if h.wellKnown(q, q.Path()) {
			return true
		}
	}
	if path, ok := cutPreview(q.path); ok {
		return h.preview(q, path)
	}
	target, err, found := h.find(q)
	return found && h.follow(q, target, err)
}

// readPath returns a path without its first slash, decoded once. An escaped slash stays escaped, as it does not
// separate segments. A % that begins no escape stays, too. No name has a %.
func readPath(path []byte) []byte {
	if len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	escape := bytes.IndexByte(path, '%')
	if escape < 0 {
		return path
	}
	decoded := append(make([]byte, 0, len(path)), path[:escape]...)
	for i := escape; i < len(path); {
		c, size := resolve.DecodeByte(path[i:])
		if c == '/' {
			c, size = path[i], 1
		}
		decoded = append(decoded, c)
		i += size
	}
	return decoded
}

// find returns the link of a request. It returns false on an event loop if the request has to wait for a look-up.
func (h *Handler) find(q *request) (target resolve.Target, err error, found bool) {
	if q.loop == nil {
		target, err = h.resolver.Resolve(q.Host(), q.path, q.client, q.now)
		return target, err, true
	}
	var waited *resolve.Lookup
	if q.loop.Resumed != nil {
		waited = q.loop.Resumed.Value.(*resolve.Lookup)
	}
	target, lookup, err := h.resolver.TryResolve(q.Host(), q.path, q.client, q.now, waited, q.loop.Waiter())
	if lookup != nil {
		q.loop.Await(lookup)
		return target, nil, false
	}
	return target, err, true
}

// follow answers a request for a link that was found, or not. Stops, expiries, behaviours and forwarded queries are
// applied here, before the click is recorded. It returns false if the click has to wait for a goroutine.
func (h *Handler) follow(q *request, target resolve.Target, err error) bool {
	switch {
	case err != nil:
		h.answerError(q, target, err)
	case len(target.Location) == 0 && target.Stop >= resolve.Extended:
		return h.extended(q, target)
	case len(target.Location) == 0:
		h.answerGone(q, target)
	case !h.record(q, target, nil, h.redirected):
		return false
	default:
		h.redirect(q, target)
	}
	return true
}

// record records the click of a request, if it is one, with the name of the rule or variant that decides, and counts
// the answer. It returns false on an event loop if the spool would have to wait.
func (h *Handler) record(q *request, target resolve.Target, route []byte, answered *metrics.Counter) bool {
	var v visitor
	v.read(&q.Request.Header)
	if uncounted := h.uncounted(&v); uncounted != nil {
		uncounted.Inc()
		answered.Inc()
		return true
	}
	var buffer clickBuffer
	click := h.click(&buffer, &v, q, target, route)
	if !h.append(q, &click) && q.loop != nil {
		return false
	}
	answered.Inc()
	return true
}

// append appends a click to the spool. It returns false on an event loop if the spool would have to wait, and on a
// goroutine if it has no room.
func (h *Handler) append(q *request, click *schema.Click) bool {
	if q.loop == nil {
		return h.spool.Append(q.lane, click)
	}
	return h.clicks.Append(q.lane, click)
}

// Header names and lines of a redirect.
var (
	headerLocation     = []byte("Location")
	headerCacheControl = []byte("Cache-Control")
	privateNoStore     = []byte("private, no-store") // a cached redirect would hide the next click
	beforeLocation     = []byte("Location: ")
	afterLocation      = []byte("\r\nCache-Control: private, no-store\r\n")
)

// redirect sends a visitor to a target, with the query of the request if that is forwarded.
func (h *Handler) redirect(q *request, target resolve.Target) {
	location := target.Location
	if query := q.URI().QueryString(); target.Forward && len(query) > 0 {
		buffer := h.forwarded.Get().(*forwardBuffer)
		defer h.forwarded.Put(buffer) // the answer has a copy
		location = buffer.forward(location, query)
	}
	if q.loop != nil {
		q.loop.SendHeader(fasthttp.StatusFound, beforeLocation, location, afterLocation)
		return
	}
	q.SetStatusCode(fasthttp.StatusFound)
	if q.IsPost() {
		q.SetStatusCode(fasthttp.StatusSeeOther) // else some clients would send the password on
	}
	q.Response.Header.SetCanonical(headerLocation, location)
	q.Response.Header.SetCanonical(headerCacheControl, privateNoStore)
}

// uncounted returns nil if a visitor's request is a click, and otherwise the counter of its kind.
func (h *Handler) uncounted(v *visitor) *metrics.Counter {
	switch {
	case v.head:
		return h.heads
	case v.speculative:
		return h.prefetches
	}
	return nil
}

// cutPreview returns the part of a path that names a link if the path asks for the page about it: a plus sign follows.
func cutPreview(path []byte) (name []byte, ok bool) {
	if bytes.IndexByte(path, '+') < 1 {
		return nil, false
	}
	return bytes.CutSuffix(resolve.AsTyped(path), []byte("+"))
}

// preview shows where a link leads. It is no click. It returns false on an event loop, unless the client has seen too
// many such pages.
func (h *Handler) preview(q *request, path []byte) bool {
	if q.loop != nil {
		wait := h.resolver.WaitPreview(q.client, q.now)
		if wait > 0 {
			h.refuse(q, resolve.Target{}, wait)
		}
		return wait > 0
	}
	target, link, err := h.resolver.Preview(q.Host(), path, q.client, q.now)
	if err == nil && target.IsBehind() && !q.cutRest(&target, path) {
		h.answerNoLink(q, target)
		return true
	}
	verdict := limit.Open
	if err == nil && target.Stop == resolve.Extended {
		if _, extension := target.Extended(); extension.Limit() > 0 {
			_, verdict = h.take(q, target.LinkID, extension.Limit(), false)
		}
	}
	if verdict == limit.UsedUp {
		h.resolver.Expire(&target)
	}
	switch {
	case err != nil:
		h.answerError(q, target, err)
	case verdict == limit.Unavailable:
		h.answerUnavailable(q, target)
	case len(target.Location) == 0:
		h.answerGone(q, target)
	case target.Stop == resolve.Extended && hasPassword(target):
		h.show(q, target, &h.pages.forVisitor(q.RequestCtx).locked)
	default:
		h.previewLocation(q, target, link)
	}
	return true
}

// previewLocation shows where a link leads that redirects: its pattern, unless a path follows the link's name.
func (h *Handler) previewLocation(q *request, target resolve.Target, link schema.Link) {
	if len(q.rest) > 0 && target.Stop == resolve.Extended {
		switch buffer, ok := h.place(q, &target, true); {
		case !ok:
			return
		case buffer != nil:
			defer h.forwarded.Put(buffer) // the page has a copy
		}
	}
	h.previewed.Inc()
	h.show(q, target, h.pages.preview(q.RequestCtx, target, link))
}

// answerError says why a link was not found.
func (h *Handler) answerError(q *request, target resolve.Target, err error) {
	switch {
	case schema.ErrorCode(err) == schema.CodeNotFound:
		h.answerNoLink(q, target)
	case err == resolve.ErrTooMany:
		h.refuse(q, target, h.resolver.Wait(q.client, q.now))
	default:
		h.answerUnavailable(q, target)
	}
}

// answerNoLink answers a request for the front page of a host, or for a link that does not exist, as the domain says.
func (h *Handler) answerNoLink(q *request, target resolve.Target) {
	isRoot, url := len(resolve.AsTyped(q.path)) == 0, resolve.NotFoundURL
	if isRoot {
		url = resolve.RootURL
	}
	switch location := h.resolver.SiteLocation(&target, url); {
	case len(location) > 0:
		h.sites.counter(h.resolver.HostName(q.Host()), isRoot).Inc()
		h.redirect(q, resolve.Target{Location: location})
	case isRoot:
		h.show(q, target, &h.pages.forVisitor(q.RequestCtx).front)
	default:
		h.notFound.Inc()
		h.show(q, target, &h.pages.forVisitor(q.RequestCtx).notFound)
	}
}

func (h *Handler) answerUnavailable(q *request, target resolve.Target) {
	h.unavailable.Inc()
	h.show(q, target, &h.pages.forVisitor(q.RequestCtx).unavailable)
	q.Response.Header.Set("Retry-After", "1")
}

// refuse answers a client that has asked for too many unknown links, or pages about links.
func (h *Handler) refuse(q *request, target resolve.Target, wait time.Duration) {
	h.tooMany.Inc()
	h.show(q, target, &h.pages.forVisitor(q.RequestCtx).tooMany)
	q.Response.Header.Set("Retry-After", strconv.Itoa(int(max(1, (wait+time.Second-1)/time.Second))))
}

// answerGone says why a link does not redirect.
func (h *Handler) answerGone(q *request, target resolve.Target) {
	h.gone.Inc()
	pages := h.pages.forVisitor(q.RequestCtx)
	why := &pages.gone
	switch target.Stop {
	case resolve.TakenDown:
		why = &pages.takenDown
	case resolve.Unsafe:
		why = &pages.unsafe
	case resolve.Deleted:
		why = &pages.deleted
	case resolve.Expired:
		why = &pages.expired
	}
	h.show(q, target, why)
}

// fixed answers a request for a path that is the same on every host, and reports whether it is one.
func (h *Handler) fixed(ctx *fasthttp.RequestCtx) bool {
	switch string(ctx.Path()) {
	case "/robots.txt":
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString(h.robots)
	case "/favicon.ico":
		ctx.Response.Header.Set("Cache-Control", "public, max-age=86400")
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	case "/healthz":
		return h.health && service.AnswerHealth(ctx)
	default:
		return false
	}
	return true
}

var wellKnownPath = []byte("/.well-known/")

// isWellKnown reports whether a path is a well-known one for programs (RFC 8615).
func isWellKnown(path []byte) bool {
	// the second byte decides for most paths
	return len(path) > 1 && path[1] == '.' && bytes.HasPrefix(path, wellKnownPath)
}

// wellKnown answers a request for a well-known path, and reports whether the host has an answer: the response to an
// authority's challenge (RFC 8555, section 8.3), a document that lets apps open links, or a security.txt.
func (h *Handler) wellKnown(q *request, path []byte) bool {
	switch name := string(path); name {
	case schema.AppleLinksPath, schema.AndroidLinksPath:
		document, err := h.resolver.AppLinks(q.Host(), name, q.client, q.now)
		if err != nil {
			h.answerError(q, resolve.Target{}, err)
		} else if document != "" {
			q.SetContentType("application/json")
			q.Response.Header.Set("Cache-Control", "no-cache")
			q.Response.Header.Set("X-Content-Type-Options", "nosniff")
			q.SetBodyString(document)
		}
		return err != nil || document != ""
	case service.SecurityPath:
		return h.resolver.IsDefault(q.Host()) && h.contacts.Answer(q.RequestCtx)
	default:
		return h.challenge != nil && bytes.HasPrefix(path, challengePath) && h.challenge(q.RequestCtx)
	}
}

var challengePath = []byte("/.well-known/acme-challenge/")

// recover answers a request whose handler panicked, so that a panic does not end the process.
func (h *Handler) recover(ctx *fasthttp.RequestCtx, answered *bool) {
	if cause := recover(); cause != nil {
		h.failed.Inc()
		h.log.Error("request failed", "error", fmt.Sprintf("panic: %v\n%s", cause, debug.Stack()))
		ctx.Response.Reset()
		h.pages.forVisitor(ctx).failed.answer(ctx, nameless)
		*answered = true
	}
}

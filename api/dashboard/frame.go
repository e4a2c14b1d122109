package dashboard

import (
	"bytes"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/clickreport"
	"linkstream/api/customdomain"
	"linkstream/api/links"
	"linkstream/api/live"
	"linkstream/api/ratelimit"
	"linkstream/api/reads"
	"linkstream/api/request"
	"linkstream/api/sharing"
	"linkstream/api/transfer"
	"linkstream/api/webhook"
	"linkstream/schema"
	"linkstream/schema/clientaddr"
	"linkstream/schema/turns"
)

// Root is the path prefix of the dashboard.
const Root = "/dashboard"

// pathRobots is the path of the file that turns crawlers away.
const pathRobots = "/robots.txt"

// callTimeout bounds all store calls of one request together, not counting the time in which its form arrives.
var callTimeout = 10 * time.Second

// Dashboard is the HTTP handler of all pages.
type Dashboard struct {
	Parts
	url       schema.BaseURL
	unnamed   bool // url may not be what the browser shows
	secure    bool // url is https
	now       func() time.Time
	signUp    bool
	proxies   clientaddr.Proxies
	sessions  *auth.Sessions
	attempts  *ratelimit.AttemptLimiter
	passwords *auth.PasswordPool
	pace      *turns.Bucket // by account
	readers   *readers      // of shared reports
	brand     *brand        // of the default domain; nil: the service's
	busyPage  []byte
	reference func() (referencePage, error)
	assets    assets
	router    *router.Router
	answer    fasthttp.RequestHandler  // router, with compressed answers
	forms     []string                 // routes of POST
	readable  map[string]bool          // routes of GET
	above     map[string]int           // how far the page of a route of POST is above it, see routeReloads
	kept      map[string][]string      // fields by route of POST, see keep
	prices    map[string]request.Price // by method and route
	files     *request.Files
	bodies    *turns.Bound // bytes of large forms
}

// routeReloads lets GET of a form's path lead to the nearest page above it. Browsers ask for it when somebody confirms
// the address of a page that answered a form.
func (d *Dashboard) routeReloads() {
	for _, form := range d.forms {
		page, up := form, 0
		for !d.readable[page] {
			page, up = path.Dir(page), up+1
		}
		if up == 0 {
			continue
		}
		d.above[form] = up
		d.get(form, request.Constant, func(c *call) error {
			to := string(c.http.URI().PathOriginal())
			for range up {
				to = path.Dir(to)
			}
			if !localPath(to) {
				return errNoPage
			}
			return c.redirect(to)
		})
	}
}

// get handles GET and HEAD of path for signed-in users and redirects others to the sign-in page.
func (d *Dashboard) get(path string, price request.Price, handle func(*call) error) {
	d.route(fasthttp.MethodGet, path, admitAccount, price, handle)
}

// post handles POST of path for signed-in users whose form carries the session's CSRF token.
func (d *Dashboard) post(path string, price request.Price, handle func(*call) error) {
	d.route(fasthttp.MethodPost, path, admitAccount, price, handle)
}

// openGet and openPost handle paths that are open to everyone. call.signedIn reports whether the user is signed in.
func (d *Dashboard) openGet(path string, price request.Price, handle func(*call) error) {
	d.route(fasthttp.MethodGet, path, admitAnyone, price, handle)
}

func (d *Dashboard) openPost(path string, price request.Price, handle func(*call) error) {
	d.route(fasthttp.MethodPost, path, admitAnyone, price, handle)
}

func (d *Dashboard) route(method, path string, admit guard, price request.Price, handle func(*call) error) {
	d.prices[method+" "+path] = price
	handler := d.handler(path, admit, price, handle)
	d.router.Handle(method, path, handler)
	if method == fasthttp.MethodPost {
		d.forms = append(d.forms, path)
	}
	if method == fasthttp.MethodGet {
		d.readable[path] = true
		d.router.Handle(fasthttp.MethodHead, path, handler)
	}
}

// Owns reports whether the dashboard handles a request: all paths below Root, pathRobots, pathAgents, and if a browser
// asks for them all other paths that are not the API's.
func Owns(http *fasthttp.RequestCtx) bool {
	path := string(http.URI().PathOriginal())
	if path == Root || strings.HasPrefix(path, Root+"/") || path == pathRobots || path == pathAgents {
		return true
	}
	read := http.IsGet() || http.IsHead()
	return read && !strings.HasPrefix(path, "/api/") && bytes.Contains(http.Request.Header.Peek(fasthttp.HeaderAccept),
		[]byte("text/html"))
}

// Credential returns the digest of the session that a request names, zero if it names none. Readers of shared reports
// name a share.
func (d *Dashboard) Credential(http *fasthttp.RequestCtx) request.Credential {
	if secret, shared := strings.CutPrefix(string(http.URI().PathOriginal()), sharing.Path); shared {
		return sharing.Credential(secret)
	}
	return auth.SessionCredential(string(http.Request.Header.Cookie(d.cookieName(sessionCookie))))
}

// turnKey is the key of the *request.Turn among a request's user values.
type turnKey struct{}

// Handle answers a request that Owns has accepted, that was admitted, and whose body has not been read.
func (d *Dashboard) Handle(http *fasthttp.RequestCtx, turn *request.Turn) {
	http.SetUserValue(turnKey{}, turn)
	d.setHeaders(&http.Response.Header)
	if string(http.URI().PathOriginal()) == Root+"/" { // the router treats it like Root
		http.URI().SetPath("/")
	}
	d.answer(http)
}

// Reject answers a request that the server could not read.
func (d *Dashboard) Reject(http *fasthttp.RequestCtx, turn *request.Turn, refusal *request.Refusal) {
	http.SetUserValue(turnKey{}, turn)
	d.setHeaders(&http.Response.Header)
	d.handler(request.OtherRoute, admitNobody, request.Constant, func(*call) error { return refusal })(http)
}

// RejectBusy answers a request that was refused for want of a turn.
func (d *Dashboard) RejectBusy(http *fasthttp.RequestCtx) {
	defer func(began time.Time) {
		d.Requests.Observe(request.OtherRoute, http.Response.StatusCode(), began)
	}(time.Now())
	d.setHeaders(&http.Response.Header)
	http.Response.Header.Set(fasthttp.HeaderRetryAfter, "5")
	http.SetContentType(htmlType)
	http.SetStatusCode(errBusy.Status)
	http.Response.SetBodyRaw(d.busyPage)
}

// handler returns the fasthttp handler for a route: it admits the request, runs handle and renders its error, if any.
func (d *Dashboard) handler(
	route string, admit guard, price request.Price, handle func(*call) error,
) fasthttp.RequestHandler {
	return func(http *fasthttp.RequestCtx) {
		turn, _ := http.UserValue(turnKey{}).(*request.Turn)
		c := &call{http: http, turn: turn, dashboard: d, route: route}
		request.SetRoute(http, route)
		c.setDeadline()
		defer func() { c.end() }()
		began := time.Now()
		defer func() { d.Requests.Observe(route, http.Response.StatusCode(), began) }()
		defer d.recover(c)
		admitted, err := admit(c)
		if err == nil && admitted {
			err = d.Work.Do(http, price, c.payer(), func() error {
				if price.Waits() {
					c.setDeadline()
				}
				return handle(c)
			})
		}
		if err != nil {
			d.fail(c, err)
		}
	}
}

// recover answers with a failure page if the handler panics.
func (d *Dashboard) recover(c *call) {
	if cause := recover(); cause != nil {
		d.fail(c, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
	}
}

// policy restricts pages to resources of the dashboard itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets the headers of every answer. Pages are not cached; assets override that.
func (d *Dashboard) setHeaders(header *fasthttp.ResponseHeader) {
	header.Set("Content-Security-Policy", policy)
	header.Set("Cache-Control", "no-store")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	// With no-referrer, browsers send forms with "Origin: null".
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Robots-Tag", "noindex")
	if d.secure {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// Parts are the dashboard's dependencies.
type Parts struct {
	DB        schema.Database
	Clicks    *reads.Clicks
	Lag       *clickreport.Lag
	Rankings  *clickreport.Rankings
	Live      *live.Hub
	Shortener *links.Shortener
	Shares    *sharing.Shares
	Domains   *customdomain.Manager
	Imports   *transfer.Uploads
	Webhooks  *webhook.Sender
	Work      *request.Work
	Requests  *request.Recorder
	Document  []byte // in OpenAPI, of the API
	Log       *slog.Logger
}

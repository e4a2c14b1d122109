// Package rest implements version 1 of the public API: it creates short links, lists them and reads their statistics, as
// JSON over HTTP.
package rest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"linkstream/api/admission"
	"linkstream/api/auth"
	"linkstream/api/httpmetrics"
	"linkstream/api/ratelimit"
	"linkstream/api/requestspan"
	"linkstream/api/shorten"
	"linkstream/schema"
)

const (
	root           = "/api/v1"
	pathShorten    = root + "/shorten"
	pathLinks      = root + "/links"
	pathLink       = root + "/links/{hash}"
	pathBulk       = root + "/links/bulk"
	pathTags       = root + "/tags"
	pathStats      = root + "/stats/{hash}"
	pathLinkReport = root + "/links/{hash}/report"
	pathReport     = root + "/report"
	pathOpenAPI    = root + "/openapi.json"
)

//go:embed openapi.json
var openAPI []byte

const (
	// callTimeout bounds the time that one request may wait for the stores.
	callTimeout = 5 * time.Second
	// maxBody bounds a request's body in bytes.
	maxBody = 64 << 10
)

// API answers the requests of version 1.
type API struct {
	tokens    *auth.Authenticator
	limiter   *ratelimit.RequestLimiter
	shortener *shorten.Shortener
	links     linkStore
	underWay  sync.Map // of keyedCall
	clicks    schema.ClickStore
	reports   Reports
	room      *admission.Room // for large bodies
	router    *router.Router
	requests  *httpmetrics.Recorder
	log       *slog.Logger
}

// linkStore is what the API needs of the store of links.
type linkStore interface {
	schema.LinkStore
	schema.IdempotencyStore
	Domains(ctx context.Context, accountID int64) ([]schema.Domain, error)
}

// New returns an API that records its requests in set.
func New(tokens *auth.Authenticator, limiter *ratelimit.RequestLimiter, shortener *shorten.Shortener, links linkStore,
	clicks schema.ClickStore, reports Reports, requests *httpmetrics.Recorder, log *slog.Logger) *API {
	a := &API{
		tokens: tokens, limiter: limiter, shortener: shortener, links: links, clicks: clicks, reports: reports,
		room: admission.NewRoom(), requests: requests, log: log,
	}
	a.router = router.New()
	a.router.RedirectTrailingSlash, a.router.RedirectFixedPath = false, false // each resource has exactly one path
	a.route(fasthttp.MethodPost, pathShorten, a.createLink)
	a.route(fasthttp.MethodGet, pathLinks, a.listLinks)
	a.route(fasthttp.MethodPost, pathBulk, a.createLinks)
	a.route(fasthttp.MethodGet, pathTags, a.listTags)
	a.route(fasthttp.MethodGet, pathLink, a.getLink)
	a.route(fasthttp.MethodPatch, pathLink, a.editLink)
	a.route(fasthttp.MethodDelete, pathLink, a.deleteLink)
	a.route(fasthttp.MethodGet, pathStats, a.linkStats)
	a.route(fasthttp.MethodGet, pathLinkReport, a.linkReport)
	a.route(fasthttp.MethodGet, pathReport, a.accountReport)
	a.route(fasthttp.MethodGet, pathOpenAPI, a.describe)
	a.router.NotFound = func(http *fasthttp.RequestCtx) { a.fail(http, errNoPath) }
	a.router.MethodNotAllowed = func(http *fasthttp.RequestCtx) { a.fail(http, errMethod) } // the router has set Allow
	a.router.GlobalOPTIONS = func(http *fasthttp.RequestCtx) { http.SetStatusCode(fasthttp.StatusNoContent) }
	return a
}

// call is one request.
type call struct {
	ctx     context.Context // for calls to the stores
	cancel  context.CancelFunc
	leave   func() // gives back the room of the body; nil: none
	http    *fasthttp.RequestCtx
	pass    *admission.Pass
	account int64 // 0 if the path needs no token
	token   int64 // its ID; 0 if the path needs none
	arrived time.Time
	route   string // the pattern; OtherRoute until the router has found it
}

// callKey is the key of the call among a request's user values.
type callKey struct{}

func callOf(http *fasthttp.RequestCtx) *call { return http.UserValue(callKey{}).(*call) }

// route registers the handler of a path. An error that it returns becomes the answer. GET also registers HEAD.
func (a *API) route(method, path string, handle func(*call) error) {
	handler := func(http *fasthttp.RequestCtx) {
		c := callOf(http)
		c.route = path
		requestspan.Route(http, path)
		if err := handle(c); err != nil {
			a.fail(http, err)
		}
	}
	a.router.Handle(method, path, handler)
	if method == fasthttp.MethodGet {
		a.router.Handle(fasthttp.MethodHead, path, handler)
	}
}

// Credential returns what a request claims to be: its API token. It is zero without a well-formed token.
func (a *API) Credential(http *fasthttp.RequestCtx) admission.Credential {
	return auth.Credential(http.Request.Header.Peek("Authorization"))
}

// Handle answers a request that has passed the gate and whose body has not been read.
func (a *API) Handle(http *fasthttp.RequestCtx, pass *admission.Pass) { a.serve(http, pass, nil) }

// Reject answers a request that could not be read. Authentication and the rate limit still come first.
func (a *API) Reject(http *fasthttp.RequestCtx, pass *admission.Pass, refusal *admission.Refusal) {
	a.serve(http, pass, refusal)
}

// RejectBusy answers a request that the gate has refused.
func (a *API) RejectBusy(http *fasthttp.RequestCtx) {
	defer func(began time.Time) {
		a.requests.Observe(httpmetrics.OtherRoute, http.Response.StatusCode(), began)
	}(time.Now())
	setHeaders(&http.Response.Header)
	http.Response.Header.Set("Retry-After", busyRetryAfter)
	a.fail(http, errBusy)
}

func setHeaders(header *fasthttp.ResponseHeader) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
}

// serve answers a request, with err if that is not nil. Below /api/v1 authentication comes first, then the rate limit, then the
// body and everything else. So every answer to a valid token carries the rate limit headers, and nobody else's body is read.
func (a *API) serve(http *fasthttp.RequestCtx, pass *admission.Pass, err error) {
	c := &call{http: http, pass: pass, arrived: time.Now(), route: httpmetrics.OtherRoute}
	c.setDeadline(callTimeout)
	defer c.end()
	http.SetUserValue(callKey{}, c)
	defer func(began time.Time) { a.requests.Observe(c.route, http.Response.StatusCode(), began) }(time.Now())
	defer a.recover(http)

	setHeaders(&http.Response.Header)
	path := string(http.URI().PathOriginal())
	inAPI := path == root || strings.HasPrefix(path, root+"/")
	public := path == pathOpenAPI && (http.IsGet() || http.IsHead())
	if inAPI && !public {
		if denied := a.admit(c); denied != nil {
			err = denied
		}
	}
	switch {
	case err != nil:
	case !inAPI:
		err = errNoPath
	case !public:
		err = a.readBody(c)
	}
	if err != nil {
		a.fail(http, err)
		return
	}
	a.router.Handler(http)
}

// admit authenticates the caller and applies the rate limit.
func (a *API) admit(c *call) error {
	var grant auth.Grant
	err := c.pass.LookUp(func() (err error) {
		c.setDeadline(callTimeout) // the stores may take it from now on
		grant, err = a.tokens.Authenticate(c.ctx, c.http.Request.Header.Peek("Authorization"))
		return err
	})
	switch {
	case errors.Is(err, admission.ErrBusy):
		c.http.Response.Header.Set("Retry-After", busyRetryAfter)
		return errBusy
	case err != nil:
		if schema.ErrorCode(err) == schema.CodeUnauthorized {
			c.pass.Distrust()
		}
		return withOutage("API tokens cannot be checked", err)
	}
	c.pass.Trust()
	c.token = grant.TokenID
	if _, err := a.count(c, 1); err != nil {
		return err
	}
	if grant.Suspended {
		return errSuspended
	}
	c.account = grant.AccountID
	return nil
}

// count counts n requests against the rate limit of the caller's token, all or none.
func (a *API) count(c *call, n int) (ratelimit.Quota, error) {
	quota, err := a.limiter.AllowMany(c.ctx, c.token, n)
	c.setQuota(quota)
	switch {
	case err != nil:
		return quota, withOutage("The rate limit cannot be checked", err)
	case !quota.OK:
		c.http.Response.Header.Set("Retry-After", strconv.Itoa(int(quota.RetryAfter.Seconds())))
		c.pass.Slow()
		return quota, errTooMany
	}
	return quota, nil
}

func (c *call) setQuota(quota ratelimit.Quota) {
	// fasthttp would write X-Ratelimit-Limit; some clients compare header names case-sensitively.
	c.http.Response.Header.SetCanonical([]byte("X-RateLimit-Limit"), []byte(strconv.Itoa(quota.Limit)))
	c.http.Response.Header.SetCanonical([]byte("X-RateLimit-Remaining"), []byte(strconv.Itoa(quota.Remaining)))
}

// setDeadline lets the stores take a time from now on.
func (c *call) setDeadline(timeout time.Duration) {
	if c.cancel != nil {
		c.cancel()
	}
	c.ctx, c.cancel = context.WithTimeout(requestspan.Context(c.http), timeout)
}

// readBody reads the body of an admitted request. The client may take longer than the stores may.
func (a *API) readBody(c *call) (err error) {
	defer c.setDeadline(callTimeout)
	if string(c.http.URI().PathOriginal()) == pathBulk {
		c.leave, err = a.room.ReadBody(c.http, c.account, maxBulkBody)
		return err
	}
	return admission.ReadBody(c.http, maxBody)
}

// end gives back what the call has taken.
func (c *call) end() {
	c.cancel()
	if c.leave != nil {
		c.leave()
	}
}

// recover answers a request whose handler has panicked.
func (a *API) recover(http *fasthttp.RequestCtx) {
	if cause := recover(); cause != nil {
		a.fail(http, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
	}
}

// describe answers GET /api/v1/openapi.json.
func (a *API) describe(c *call) error {
	c.http.SetStatusCode(fasthttp.StatusOK)
	c.http.SetContentType("application/json")
	c.http.Response.SetBodyRaw(openAPI)
	return nil
}

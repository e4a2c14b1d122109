// Package rest implements version 1 of the public API: it creates short links, lists them and reads their statistics, as
// JSON over HTTP.
package rest

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/httpmetrics"
	"linkstream/api/ratelimit"
	"linkstream/api/shorten"
	"linkstream/schema"
)

const (
	root        = "/api/v1"
	pathShorten = root + "/shorten"
	pathLinks   = root + "/links"
	pathStats   = root + "/stats/{hash}"
	pathOpenAPI = root + "/openapi.json"
)

//go:embed openapi.json
var openAPI []byte

// callTimeout bounds the time that one request may wait for the stores.
const callTimeout = 5 * time.Second

// API answers the requests of version 1.
type API struct {
	tokens    *auth.Authenticator
	limiter   *ratelimit.RequestLimiter
	shortener *shorten.Shortener
	links     schema.LinkStore
	clicks    schema.ClickStore
	router    *router.Router
	requests  *httpmetrics.Recorder
	log       *slog.Logger
}

// New returns an API that records its requests in set.
func New(tokens *auth.Authenticator, limiter *ratelimit.RequestLimiter, shortener *shorten.Shortener, links schema.LinkStore,
	clicks schema.ClickStore, requests *httpmetrics.Recorder, log *slog.Logger) *API {
	a := &API{
		tokens: tokens, limiter: limiter, shortener: shortener, links: links, clicks: clicks,
		requests: requests, log: log,
	}
	a.router = router.New()
	a.router.RedirectTrailingSlash, a.router.RedirectFixedPath = false, false // each resource has exactly one path
	a.route(fasthttp.MethodPost, pathShorten, a.createLink)
	a.route(fasthttp.MethodGet, pathLinks, a.listLinks)
	a.route(fasthttp.MethodGet, pathStats, a.linkStats)
	a.route(fasthttp.MethodGet, pathOpenAPI, a.describe)
	a.router.NotFound = func(http *fasthttp.RequestCtx) { a.fail(http, errNoPath) }
	a.router.MethodNotAllowed = func(http *fasthttp.RequestCtx) { a.fail(http, errMethod) } // the router has set Allow
	a.router.GlobalOPTIONS = func(http *fasthttp.RequestCtx) { http.SetStatusCode(fasthttp.StatusNoContent) }
	return a
}

// call is one request.
type call struct {
	ctx     context.Context // for calls to the stores
	http    *fasthttp.RequestCtx
	account int64  // 0 if the path needs no token
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
		if err := handle(c); err != nil {
			a.fail(http, err)
		}
	}
	a.router.Handle(method, path, handler)
	if method == fasthttp.MethodGet {
		a.router.Handle(fasthttp.MethodHead, path, handler)
	}
}

// Handle answers a request whose body has been read.
func (a *API) Handle(http *fasthttp.RequestCtx) { a.serve(http, nil) }

// Reject answers a request that could not be read. Authentication and the rate limit still come first.
func (a *API) Reject(http *fasthttp.RequestCtx, status int, message string) {
	a.serve(http, &httpError{status, message})
}

// serve answers a request, with err if that is not nil. Below /api/v1 authentication comes first, then the rate limit, then
// everything else, so that every answer to a valid token carries the rate limit headers.
func (a *API) serve(http *fasthttp.RequestCtx, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	c := &call{ctx: ctx, http: http, route: httpmetrics.OtherRoute}
	http.SetUserValue(callKey{}, c)
	defer func(began time.Time) { a.requests.Observe(c.route, http.Response.StatusCode(), began) }(time.Now())
	defer a.recover(http)

	header := &http.Response.Header
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	path := string(http.URI().PathOriginal())
	inAPI := path == root || strings.HasPrefix(path, root+"/")
	public := path == pathOpenAPI && (http.IsGet() || http.IsHead())
	if inAPI && !public {
		if denied := a.admit(c); denied != nil {
			err = denied
		}
	}
	if err == nil && !inAPI {
		err = errNoPath
	}
	if err != nil {
		a.fail(http, err)
		return
	}
	a.router.Handler(http)
}

// admit authenticates the caller and applies the rate limit.
func (a *API) admit(c *call) error {
	grant, err := a.tokens.Authenticate(c.ctx, c.http.Request.Header.Peek("Authorization"))
	if err != nil {
		return withOutage("API tokens cannot be checked", err)
	}
	quota, err := a.limiter.Allow(c.ctx, grant.TokenID)
	header := &c.http.Response.Header
	// fasthttp would write X-Ratelimit-Limit; some clients compare header names case-sensitively.
	header.SetCanonical([]byte("X-RateLimit-Limit"), []byte(strconv.Itoa(quota.Limit)))
	header.SetCanonical([]byte("X-RateLimit-Remaining"), []byte(strconv.Itoa(quota.Remaining)))
	if err != nil {
		return withOutage("The rate limit cannot be checked", err)
	}
	if !quota.OK {
		header.Set("Retry-After", strconv.Itoa(int(quota.RetryAfter.Seconds())))
		return errTooMany
	}
	if grant.Suspended {
		return errSuspended
	}
	c.account = grant.AccountID
	return nil
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

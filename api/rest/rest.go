// Package rest implements version 1 of the public API: it creates short links, lists them and reads their statistics,
// as JSON over HTTP.
package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/router"
	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/clickreport"
	"linkstream/api/links"
	"linkstream/api/live"
	"linkstream/api/qr"
	"linkstream/api/ratelimit"
	"linkstream/api/reads"
	"linkstream/api/request"
	"linkstream/api/sharing"
	"linkstream/api/webhook"
	"linkstream/schema"
	"linkstream/schema/turns"
)

const (
	root           = "/api/v1"
	pathShorten    = root + "/shorten"
	pathLinks      = root + "/links"
	pathLink       = root + "/links/{hash}"
	pathBulk       = root + "/links/bulk"
	pathBulkEdit   = root + "/links/bulk/edit"
	pathBulkDelete = root + "/links/bulk/delete"
	pathTags       = root + "/tags"
	pathDomains    = root + "/domains"
	pathStats      = root + "/stats/{hash}"
	pathRestore    = root + "/links/{hash}/restore"
	pathQR         = root + "/links/{hash}/qr"
	pathLinkReport = root + "/links/{hash}/report"
	pathReport     = root + "/report"
	pathLinkLive   = root + "/links/{hash}/live"
	pathLive       = root + "/live"
	pathWebhooks   = root + "/webhooks"
	pathWebhook    = root + "/webhooks/{id}"
	pathShares     = root + "/shares"
	pathShare      = root + "/shares/{id}"
	pathAccount    = root + "/account"
	pathOpenAPI    = root + "/openapi.json"
	pathReference  = root + "/docs"
	pathMetrics    = root + "/metrics"
	pathMCP        = root + "/mcp"
	pathExport     = root + "/export"
)

//go:embed openapi.json
var openAPI []byte

// Document returns the OpenAPI document of the API, which must not be changed.
func Document() []byte { return openAPI }

const (
	// callTimeout bounds the time that one request may wait for the stores.
	callTimeout = 5 * time.Second
	// maxBody bounds a request's body in bytes.
	maxBody = 64 << 10
)

// bulkTimeout is callTimeout of many links.
var bulkTimeout = 30 * time.Second

// API answers the requests of version 1.
type API struct {
	tokens    *auth.Authenticator
	limiter   *ratelimit.RequestLimiter
	shortener *links.Shortener
	links     linkStore
	underWay  sync.Map // of keyedCall
	clicks    *reads.Clicks
	// countedUntil returns the time up to which all clicks are counted; false if that is not known.
	countedUntil func(context.Context) (time.Time, bool)
	live         *live.Hub
	webhooks     *webhook.Sender
	shares       *sharing.Shares
	bodies       *turns.Bound // bytes of large bodies
	files        *request.Files
	origins      Origins
	reference    func(*fasthttp.RequestCtx) error
	rankings     *clickreport.Rankings
	work         *request.Work
	router       *router.Router
	prices       map[string]request.Price // by method and path
	requests     *request.Recorder
	log          *slog.Logger
}

// linkStore is the part of schema.Database that the API needs.
type linkStore interface {
	schema.LinkStore
	schema.IdempotencyStore
	schema.WebhookStore
	schema.ShareStore
	LimitUse(ctx context.Context, linkIDs []int64) (map[int64]schema.LimitUse, error)
	Domains(ctx context.Context, accountID int64) ([]schema.Domain, error)
	TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error)
}

// New returns an API. countedUntil returns the time up to which all clicks are counted; false if that is not known.
// reference answers with the page that explains the API.
func New(tokens *auth.Authenticator, limiter *ratelimit.RequestLimiter, shortener *links.Shortener, store linkStore,
	clicks *reads.Clicks, rankings *clickreport.Rankings, countedUntil func(context.Context) (time.Time, bool),
	streams *live.Hub, webhooks *webhook.Sender, shares *sharing.Shares, origins Origins,
	reference func(*fasthttp.RequestCtx) error, work *request.Work, requests *request.Recorder, log *slog.Logger) *API {
	a := &API{
		tokens: tokens, limiter: limiter, shortener: shortener, links: store, clicks: clicks, countedUntil: countedUntil,
		rankings: rankings, live: streams, webhooks: webhooks, shares: shares, bodies: request.NewBodies(),
		files:   request.NewFiles(log),
		origins: origins, reference: reference, work: work, prices: map[string]request.Price{}, requests: requests, log: log,
	}
	a.router = router.New()
	a.router.RedirectTrailingSlash, a.router.RedirectFixedPath = false, false // open removes the slash
	a.route(fasthttp.MethodPost, pathShorten, request.Passwords, a.createLink)
	a.route(fasthttp.MethodGet, pathLinks, request.Reads, a.listLinks)
	a.route(fasthttp.MethodPost, pathBulk, request.Writes, a.createLinks)
	a.route(fasthttp.MethodPost, pathBulkEdit, request.Writes, a.editLinks)
	a.route(fasthttp.MethodPost, pathBulkDelete, request.Writes, a.deleteLinks)
	a.route(fasthttp.MethodGet, pathExport, request.Sends, a.export)
	a.route(fasthttp.MethodGet, pathTags, request.Reads, a.listTags)
	a.route(fasthttp.MethodGet, pathDomains, request.Constant, a.listDomains)
	a.route(fasthttp.MethodGet, pathLink, request.Reads, a.ofLink(a.readLink))
	a.route(fasthttp.MethodPatch, pathLink, request.Passwords, a.ofLink(a.editLink))
	a.route(fasthttp.MethodPut, pathLink, request.Passwords, a.putLink)
	a.route(fasthttp.MethodDelete, pathLink, request.Constant, a.ofLink(a.deleteLink))
	a.route(fasthttp.MethodPost, pathRestore, request.Reads, a.restoreLink)
	a.route(fasthttp.MethodGet, pathStats, request.Reads, a.ofLink(a.linkStats))
	a.route(fasthttp.MethodGet, pathQR, request.Pixels(qr.Price), a.linkQR)
	a.route(fasthttp.MethodGet, pathLinkReport, request.Reads, a.linkReport)
	a.route(fasthttp.MethodGet, pathReport, request.Reads, a.accountReport)
	a.route(fasthttp.MethodGet, pathMetrics, request.Reads, a.accountMetrics)
	a.route(fasthttp.MethodGet, pathLinkLive, request.Streams, a.linkLive)
	a.route(fasthttp.MethodGet, pathLive, request.Streams, a.accountLive)
	a.routeHistory()
	a.routeWebhooks()
	a.routeShares()
	a.route(fasthttp.MethodGet, pathAccount, request.Constant, a.getAccount)
	a.route(fasthttp.MethodPost, pathMCP, request.Nested, a.callTool)
	a.route(fasthttp.MethodGet, pathOpenAPI, request.Constant, a.describe)
	a.route(fasthttp.MethodGet, pathReference, request.Constant, func(c *call) error { return a.reference(c.http) })
	a.router.NotFound = func(http *fasthttp.RequestCtx) { a.fail(http, errNoPath) }
	a.router.MethodNotAllowed = func(http *fasthttp.RequestCtx) { a.fail(http, errMethod) } // the router has set Allow
	a.router.GlobalOPTIONS = a.answerOptions
	return a
}

// call is one request.
type call struct {
	ctx     context.Context // for calls to the stores
	cancel  context.CancelFunc
	leave   func() // gives the bytes of the body back; nil: none
	http    *fasthttp.RequestCtx
	turn    *request.Turn
	account int64  // 0 if the path needs no token
	token   int64  // its ID; 0 if the path needs none
	scopes  string // of the token, see schema.HasScope
	quota   ratelimit.Quota
	arrived time.Time
	route   string // the pattern; OtherRoute until the router has found it

	inAPI     bool // the path is below root
	takesBody bool // the request needs a token
}

// callKey is the key of the call among a request's user values.
type callKey struct{}

func callOf(http *fasthttp.RequestCtx) *call { return http.UserValue(callKey{}).(*call) }

// route registers the handler of a path. An error that it returns becomes the answer. GET also registers HEAD.
func (a *API) route(method, path string, price request.Price, handle func(*call) error) {
	a.prices[method+" "+path] = price
	scope := scopeOf(method, path)
	handler := func(http *fasthttp.RequestCtx) {
		c := callOf(http)
		c.route = path
		request.SetRoute(http, path)
		err := error(errScope)
		if scope == "" || schema.HasScope(c.scopes, scope) {
			err = a.work.Do(http, price, turns.Account(c.account), func() error {
				if price.Waits() {
					c.setDeadline(callTimeout)
				}
				return handle(c)
			})
		}
		if err != nil {
			a.fail(http, err)
		}
	}
	a.router.Handle(method, path, handler)
	if method == fasthttp.MethodGet {
		a.router.Handle(fasthttp.MethodHead, path, handler)
	}
}

// scopeOf returns the scope that a token needs for a method of a path, "" if it needs none.
func scopeOf(method, path string) string {
	switch path {
	case pathOpenAPI, pathReference, pathAccount, pathMCP: // a tool's requests need their scopes
		return ""
	case pathStats, pathReport, pathLinkReport, pathLive, pathLinkLive, pathMetrics,
		pathShares, pathShare: // whoever may read reports may let others read them
		return schema.ScopeReadReports
	}
	switch {
	case strings.HasPrefix(path, pathWebhooks):
		return schema.ScopeWebhooks
	case path == pathHistory && method == fasthttp.MethodGet:
		return schema.ScopeReadReports
	case method == fasthttp.MethodGet:
		return schema.ScopeReadLinks
	}
	return schema.ScopeWriteLinks
}

// Credential returns the digest of a request's API token, zero without a well-formed token.
func (a *API) Credential(http *fasthttp.RequestCtx) request.Credential {
	return auth.Credential(http.Request.Header.Peek("Authorization"))
}

// Handle answers a request that was admitted and whose body has not been read.
func (a *API) Handle(http *fasthttp.RequestCtx, turn *request.Turn) { a.serve(http, turn, nil) }

// Reject answers a request that could not be read. Authentication and the rate limit still come first.
func (a *API) Reject(http *fasthttp.RequestCtx, turn *request.Turn, refusal *request.Refusal) {
	a.serve(http, turn, refusal)
}

// RejectBusy answers a request that was refused for want of a turn.
func (a *API) RejectBusy(http *fasthttp.RequestCtx) {
	defer func(began time.Time) {
		a.requests.Observe(request.OtherRoute, http.Response.StatusCode(), began)
	}(time.Now())
	a.setHeaders(http)
	http.Response.Header.Set("Retry-After", busyRetryAfter)
	a.fail(http, errBusy)
}

func (a *API) setHeaders(http *fasthttp.RequestCtx) {
	http.Response.Header.Set("X-Content-Type-Options", "nosniff")
	http.Response.Header.Set("Cache-Control", "no-store")
	a.origins.allow(http)
}

// Ask reports whether the body of a request is wanted, which Handle or Reject then answers. Otherwise it has answered
// the request. Handle need not be asked first.
func (a *API) Ask(http *fasthttp.RequestCtx, turn *request.Turn) (wanted bool) {
	defer a.recover(http)
	c, err := a.open(http, turn)
	if err == nil && c.takesBody {
		return true
	}
	a.answer(c, err)
	return false
}

// serve answers a request, with err if that is not nil. Below /api/v1 authentication comes first, then the rate limit,
// then the body and everything else. So every answer to a valid token carries the rate limit headers, and nobody else's
// body is read.
func (a *API) serve(http *fasthttp.RequestCtx, turn *request.Turn, err error) {
	defer a.recover(http)
	c, asked := http.UserValue(callKey{}).(*call)
	if !asked {
		var denied error
		if c, denied = a.open(http, turn); denied != nil {
			err = denied
		}
	}
	a.answer(c, err)
}

// open begins a call, which answer ends. It returns why the caller is denied.
func (a *API) open(http *fasthttp.RequestCtx, turn *request.Turn) (*call, error) {
	c := &call{http: http, turn: turn, arrived: time.Now(), route: request.OtherRoute}
	c.setDeadline(callTimeout)
	http.SetUserValue(callKey{}, c)
	a.setHeaders(http)
	path := string(http.URI().PathOriginal())
	c.inAPI = path == root || strings.HasPrefix(path, root+"/")
	if bare, slash := strings.CutSuffix(path, "/"); slash && c.inAPI {
		path = bare // each resource has one path
		http.URI().SetPath(path)
	}
	open := (path == pathOpenAPI || path == pathReference) && (http.IsGet() || http.IsHead())
	c.takesBody = c.inAPI && !open && !a.origins.asks(http)
	if c.takesBody {
		return c, a.admit(c)
	}
	return c, nil
}

// answer reads the body of a request and answers it, with err if that is not nil.
func (a *API) answer(c *call, err error) {
	defer c.end()
	defer func() { a.requests.Observe(c.route, c.http.Response.StatusCode(), c.arrived) }()
	defer a.recover(c.http)
	switch {
	case err != nil:
	case !c.inAPI:
		err = errNoPath
	case c.takesBody:
		err = a.readBody(c)
	}
	if err != nil {
		a.fail(c.http, err)
		return
	}
	a.router.Handler(c.http)
}

// admit authenticates the caller and applies the rate limit.
func (a *API) admit(c *call) error {
	var grant auth.Grant
	err := c.turn.LookUp(func() (err error) {
		c.setDeadline(callTimeout) // the stores may take it from now on
		grant, err = a.tokens.Authenticate(c.ctx, c.http.Request.Header.Peek("Authorization"))
		return err
	})
	switch {
	case errors.Is(err, request.ErrBusy):
		c.http.Response.Header.Set("Retry-After", busyRetryAfter)
		return errBusy
	case err != nil:
		if schema.ErrorCode(err) == schema.CodeUnauthorized {
			c.turn.Distrust()
		}
		return withOutage("API tokens cannot be checked", err)
	}
	c.turn.Trust()
	c.token = grant.TokenID
	if _, err := a.count(c, 1); err != nil {
		return err
	}
	if grant.Suspended {
		return errSuspended
	}
	c.account, c.scopes = grant.AccountID, grant.Scopes
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
		c.turn.Slow()
		return quota, errTooMany
	}
	return quota, nil
}

func (c *call) setQuota(quota ratelimit.Quota) {
	c.quota = quota
	// fasthttp would write X-Ratelimit-Limit; some clients compare header names case-sensitively.
	c.http.Response.Header.SetCanonical([]byte("X-RateLimit-Limit"), []byte(strconv.Itoa(quota.Limit)))
	c.http.Response.Header.SetCanonical([]byte("X-RateLimit-Remaining"), []byte(strconv.Itoa(quota.Remaining)))
}

// setDeadline lets the stores take a time from now on.
func (c *call) setDeadline(timeout time.Duration) {
	if c.cancel != nil {
		c.cancel()
	}
	c.ctx, c.cancel = context.WithTimeout(request.Context(c.http), timeout)
}

// readBody reads the body of an admitted request. The client may take longer than the stores may.
func (a *API) readBody(c *call) (err error) {
	defer c.setDeadline(callTimeout)
	most := 0
	switch path := string(c.http.URI().PathOriginal()); {
	case path == pathBulk, path == pathBulkEdit, path == pathBulkDelete:
		most = maxBulkBody
	case isHistory(path) && c.http.IsPut():
		most = maxHistoryBody
	}
	if most > 0 {
		c.leave, err = request.ReadLarge(c.http, most, a.bodies, turns.Account(c.account))
		return err
	}
	return request.ReadBody(c.http, maxBody)
}

// end releases the resources of the call.
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

// document is the OpenAPI document as it is sent.
var document = sync.OnceValue(func() (d struct {
	zipped []byte
	tag    string
}) {
	digest := sha256.Sum256(openAPI)
	d.tag = `W/"` + hex.EncodeToString(digest[:8]) + `"` // weak: one for both codings
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(openAPI) // neither fails: a buffer takes everything
	_ = zip.Close()
	d.zipped = out.Bytes()
	return d
})

// describe answers GET /api/v1/openapi.json. Clients may keep the document, and ask whether it has changed.
func (a *API) describe(c *call) error {
	header, document := &c.http.Response.Header, document()
	header.Set(fasthttp.HeaderCacheControl, "no-cache")
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	header.Set(fasthttp.HeaderETag, document.tag)
	if strings.Contains(string(c.http.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), document.tag) {
		c.http.SetStatusCode(fasthttp.StatusNotModified)
		return nil
	}
	c.http.SetStatusCode(fasthttp.StatusOK)
	c.http.SetContentType("application/json")
	c.http.Response.SetBodyRaw(openAPI)
	if request.AcceptsGzip(c.http) {
		header.SetContentEncoding("gzip")
		c.http.Response.SetBodyRaw(document.zipped)
	}
	return nil
}

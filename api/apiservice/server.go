package apiservice

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/dashboard"
	"linkstream/api/linkpassword"
	"linkstream/api/request"
	"linkstream/schema/clientaddr"
	"linkstream/schema/service"
	"linkstream/schema/tracing"
)

// Limits of what one client may take of the server.
const (
	maxHeaderBytes = 8 << 10
	readTimeout    = 10 * time.Second // for a whole request
	writeTimeout   = 10 * time.Second
	idleTimeout    = 75 * time.Second // longer than the 60 s after which load balancers drop idle connections
)

// site answers the requests of one part of the service. It reads the body of a request itself, after it has identified
// the sender.
type site interface {
	// Credential returns what the request claims to be.
	Credential(*fasthttp.RequestCtx) request.Credential
	Handle(*fasthttp.RequestCtx, *request.Turn)
	// Reject answers a request that could not be read.
	Reject(*fasthttp.RequestCtx, *request.Turn, *request.Refusal)
	// RejectBusy answers a request that was refused for want of a turn.
	RejectBusy(*fasthttp.RequestCtx)
}

// bodySite is a site that decides, before it has read the body of a request, whether it wants it.
type bodySite interface {
	site
	// Ask returns true if Handle or Reject has to answer the request. Otherwise it has answered.
	Ask(*fasthttp.RequestCtx, *request.Turn) bool
}

// router lets anonymous requests take turns, and passes all to the API or the dashboard.
type router struct {
	api       bodySite
	pages     site
	passwords site
	anonymous *request.Anonymous
	proxies   clientaddr.Proxies
	tracer    *tracing.Tracer // nil: requests are not traced
	health    bool            // /healthz is answered
	contacts  service.Contacts
	log       *slog.Logger
}

func (r *router) handle(http *fasthttp.RequestCtx) {
	if r.health && service.AnswerHealth(http) || r.contacts.Answer(http) {
		closeUnread(http)
		return
	}
	r.serve(http, nil)
}

// visit is a request under way. It is among the request's user values.
type visit struct {
	began time.Time
	owner site
	turn  *request.Turn // nil: the request was refused
}

type visitKey struct{}

// begin begins the turn of a request, unless ask has done so.
func (r *router) begin(http *fasthttp.RequestCtx) *visit {
	if v, begun := http.UserValue(visitKey{}).(*visit); begun {
		return v
	}
	v := &visit{began: time.Now(), owner: r.api}
	http.SetUserValue(visitKey{}, v)
	request.AssignID(http)
	request.BeginSpan(http, r.tracer, r.tracer != nil && r.proxies.Contain(peer(http)))
	switch {
	case dashboard.Owns(http):
		v.owner = r.pages
	case linkpassword.Owns(http):
		v.owner = r.passwords
	}
	v.turn, _ = r.anonymous.Begin(v.owner.Credential(http), r.client(http)) // nil with its only error
	return v
}

// ask reports whether the body of a request of the API is wanted. If not, it has answered the request. The others take
// small bodies from everybody.
func (r *router) ask(http *fasthttp.RequestCtx) bool {
	if dashboard.Owns(http) || linkpassword.Owns(http) {
		return true
	}
	v := r.begin(http)
	switch {
	case v.turn == nil:
		v.owner.RejectBusy(http)
	case r.api.Ask(http, v.turn):
		return true
	default:
		v.turn.End()
	}
	r.end(http, v.began)
	return false
}

// serve lets the owner of the request's path answer it, by refusal if that is not nil.
func (r *router) serve(http *fasthttp.RequestCtx, refusal *request.Refusal) {
	v := r.begin(http)
	defer r.end(http, v.began)
	defer closeUnread(http)
	if refusal != nil {
		closeGently(http)
	}
	if v.turn == nil {
		v.owner.RejectBusy(http)
		return
	}
	defer v.turn.End()
	if refusal != nil {
		v.owner.Reject(http, v.turn, refusal)
		return
	}
	v.owner.Handle(http, v.turn)
}

// end names an answered request to its client and, at level debug, in the log.
func (r *router) end(http *fasthttp.RequestCtx, began time.Time) {
	request.AnswerID(http)
	request.EndSpan(http)
	if r.log.Enabled(context.Background(), slog.LevelDebug) {
		path := service.RedactPath(string(http.URI().PathOriginal()))
		r.log.Debug("request", "request_id", request.ID(http), "method", string(http.Method()), "path", path, "status",
			http.Response.StatusCode(), "took", time.Since(began))
	}
}

func (r *router) client(http *fasthttp.RequestCtx) netip.Addr {
	return r.proxies.Client(peer(http), &http.Request.Header)
}

// peer returns the remote address of the connection.
func peer(http *fasthttp.RequestCtx) netip.Addr {
	if tcp, ok := http.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}

// newServer returns a server of requests to r. Bodies are streamed: none is read before its sender is authenticated.
func newServer(r *router, connections int, log *slog.Logger) *fasthttp.Server {
	server := &fasthttp.Server{
		Handler:   r.handle,
		Logger:    service.ConnLogger(log),
		ConnState: track,

		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     maxHeaderBytes,
		MaxRequestBodySize: 1, // bytes that are read before Handler, but after ask; request.ReadBody has the limits
		StreamRequestBody:  true,
		// the listener has the limit; closed connections may still have a goroutine
		Concurrency: 2 * connections,

		SecureErrorLogMessage:        true, // headers hold tokens and sessions
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
	}
	service.CheckRequests(server, func(http *fasthttp.RequestCtx, err error) { r.serve(http, request.RefusalOf(err)) })
	askFirst(server, r.ask)
	return server
}

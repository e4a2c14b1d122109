package apiservice

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/admission"
	"linkstream/api/dashboard"
	"linkstream/api/linkpassword"
	"linkstream/api/request"
	"linkstream/api/sharing"
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
	Credential(*fasthttp.RequestCtx) admission.Credential
	Handle(*fasthttp.RequestCtx, *admission.Pass)
	// Reject answers a request that could not be read.
	Reject(*fasthttp.RequestCtx, *admission.Pass, *admission.Refusal)
	// RejectBusy answers a request that the gate has refused.
	RejectBusy(*fasthttp.RequestCtx)
}

// bodySite is a site that decides, before it has read the body of a request, whether it wants it.
type bodySite interface {
	site
	// Ask returns true if Handle or Reject has to answer the request. Otherwise it has answered.
	Ask(*fasthttp.RequestCtx, *admission.Pass) bool
}

// router passes requests through the gate to the API or the dashboard.
type router struct {
	api       bodySite
	pages     site
	passwords site
	gate      *admission.Gate
	proxies   clientaddr.Proxies
	tracer    *tracing.Tracer // nil: requests are not traced
	health    bool            // /healthz is answered
	log       *slog.Logger
}

func (r *router) handle(http *fasthttp.RequestCtx) {
	if r.health && service.AnswerHealth(http) {
		admission.CloseUnread(http)
		return
	}
	r.serve(http, nil)
}

// visit is a request under way. It is among the request's user values.
type visit struct {
	began time.Time
	owner site
	pass  *admission.Pass // nil: the gate has refused the request
}

type visitKey struct{}

// begin takes a request to the gate, unless ask has done so.
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
	v.pass, _ = r.gate.Enter(v.owner.Credential(http), r.client(http)) // nil with its only error
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
	case v.pass == nil:
		v.owner.RejectBusy(http)
	case r.api.Ask(http, v.pass):
		return true
	default:
		v.pass.Leave()
	}
	r.end(http, v.began)
	return false
}

// serve lets the owner of the request's path answer it, by refusal if that is not nil.
func (r *router) serve(http *fasthttp.RequestCtx, refusal *admission.Refusal) {
	v := r.begin(http)
	defer r.end(http, v.began)
	defer admission.CloseUnread(http)
	if refusal != nil {
		admission.CloseGently(http)
	}
	if v.pass == nil {
		v.owner.RejectBusy(http)
		return
	}
	defer v.pass.Leave()
	if refusal != nil {
		v.owner.Reject(http, v.pass, refusal)
		return
	}
	v.owner.Handle(http, v.pass)
}

// end names an answered request to its client and, at level debug, in the log.
func (r *router) end(http *fasthttp.RequestCtx, began time.Time) {
	request.AnswerID(http)
	request.EndSpan(http)
	if r.log.Enabled(context.Background(), slog.LevelDebug) {
		r.log.Debug("request", "request_id", request.ID(http), "method", string(http.Method()), "path",
			sharing.Redact(string(http.URI().PathOriginal())), "status", http.Response.StatusCode(), "took", time.Since(began))
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
		ConnState: admission.Track,

		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     maxHeaderBytes,
		MaxRequestBodySize: 1, // bytes that are read before Handler, but after ask; admission.ReadBody has the limits
		StreamRequestBody:  true,
		// admission.Listener has the limit; closed connections may still have a goroutine
		Concurrency: 2 * connections,

		SecureErrorLogMessage:        true, // headers hold tokens and sessions
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
	}
	service.CheckRequests(server, func(http *fasthttp.RequestCtx, err error) { r.serve(http, admission.RefusalOf(err)) })
	admission.AskFirst(server, r.ask)
	return server
}

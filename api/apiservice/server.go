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
	"linkstream/api/requestid"
	"linkstream/api/requestspan"
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

// site answers the requests of one part of the service. It reads the body of a request itself, when it knows who sends it.
type site interface {
	// Credential returns what the request claims to be.
	Credential(*fasthttp.RequestCtx) admission.Credential
	Handle(*fasthttp.RequestCtx, *admission.Pass)
	// Reject answers a request that could not be read.
	Reject(*fasthttp.RequestCtx, *admission.Pass, *admission.Refusal)
	// RejectBusy answers a request that the gate has refused.
	RejectBusy(*fasthttp.RequestCtx)
}

// router passes requests through the gate to the API or the dashboard.
type router struct {
	api, pages site
	gate       *admission.Gate
	proxies    clientaddr.Proxies
	tracer     *tracing.Tracer // nil: requests are not traced
	health     bool            // /healthz is answered
	log        *slog.Logger
}

func (r *router) handle(http *fasthttp.RequestCtx) {
	if r.health && service.AnswerHealth(http) {
		admission.CloseUnread(http)
		return
	}
	r.admit(http, nil)
}

// admit lets the owner of the request's path answer it, by refusal if that is not nil.
func (r *router) admit(http *fasthttp.RequestCtx, refusal *admission.Refusal) {
	requestid.Assign(http)
	requestspan.Begin(http, r.tracer, r.tracer != nil && r.proxies.Contain(peer(http)))
	defer r.end(http, time.Now())
	defer admission.CloseUnread(http)
	if refusal != nil {
		admission.CloseGently(http)
	}
	owner := r.api
	if dashboard.Owns(http) {
		owner = r.pages
	}
	pass, err := r.gate.Enter(owner.Credential(http), r.client(http))
	if err != nil {
		owner.RejectBusy(http)
		return
	}
	defer pass.Leave()
	if refusal != nil {
		owner.Reject(http, pass, refusal)
		return
	}
	owner.Handle(http, pass)
}

// end names an answered request to its client and, at level debug, in the log.
func (r *router) end(http *fasthttp.RequestCtx, began time.Time) {
	requestid.Answer(http)
	requestspan.End(http)
	if r.log.Enabled(context.Background(), slog.LevelDebug) {
		r.log.Debug("request", "request_id", requestid.Of(http), "method", string(http.Method()), "path", string(http.URI().PathOriginal()),
			"status", http.Response.StatusCode(), "took", time.Since(began))
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

// newServer returns a server of requests to r. Bodies are streamed, so that nobody's is read before it is known who sends it.
func newServer(r *router, connections int, log *slog.Logger) *fasthttp.Server {
	server := &fasthttp.Server{
		Handler:      r.handle,
		ErrorHandler: func(http *fasthttp.RequestCtx, err error) { r.admit(http, admission.RefusalOf(err)) },
		Logger:       service.ConnLogger(log),
		ConnState:    admission.Track,

		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     maxHeaderBytes,
		MaxRequestBodySize: 1, // bytes that are read before Handler; admission.ReadBody has the limits
		StreamRequestBody:  true,
		Concurrency:        2 * connections, // admission.Listener has the limit; closed connections may still have a goroutine

		SecureErrorLogMessage:        true, // headers hold tokens and sessions
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
	}
	service.CheckRequests(server, server.ErrorHandler)
	return server
}

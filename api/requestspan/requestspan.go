// Package requestspan traces requests to the API and the dashboard. Each is a span, with the calls to the stores below it. Without a
// tracer nothing is done and nothing allocated.
package requestspan

import (
	"context"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/httpmetrics"
	"linkstream/api/requestid"
	"linkstream/schema/span"
	"linkstream/schema/tracing"
)

// request is the span of a request.
type request struct {
	ctx   context.Context
	span  span.Span
	route string
}

type key struct{}

// Begin begins the span of a request that has an id. trusted says whether the peer may decide if the request is recorded. With a nil
// tracer it does nothing.
func Begin(http *fasthttp.RequestCtx, tracer *tracing.Tracer, trusted bool) {
	if tracer == nil {
		return
	}
	header := &http.Request.Header
	ctx := tracer.Continue(context.Background(), string(header.Peek("Traceparent")), string(header.Peek("Tracestate")), trusted)
	r := &request{route: httpmetrics.OtherRoute}
	r.ctx, r.span = span.Root(tracer.Context(ctx), "request", span.Server, time.Now())
	r.span.SetString("linkstream.request_id", requestid.Of(http))
	http.SetUserValue(key{}, r)
}

// Context returns the context for what is done for a request. It never ends.
func Context(http *fasthttp.RequestCtx) context.Context {
	if r, ok := http.UserValue(key{}).(*request); ok {
		return r.ctx
	}
	return context.Background()
}

// Route names the pattern of the request's path.
func Route(http *fasthttp.RequestCtx, route string) {
	if r, ok := http.UserValue(key{}).(*request); ok {
		r.route = route
	}
}

// methods bounds the names of spans, as routes do.
var methods = map[string]bool{fasthttp.MethodGet: true, fasthttp.MethodHead: true, fasthttp.MethodPost: true, fasthttp.MethodPut: true,
	fasthttp.MethodPatch: true, fasthttp.MethodDelete: true, fasthttp.MethodOptions: true}

var errAnswer = errors.New("the answer is an error of the service")

// End ends the span of an answered request.
func End(http *fasthttp.RequestCtx) {
	r, ok := http.UserValue(key{}).(*request)
	if !ok {
		return
	}
	method := string(http.Method())
	if !methods[method] {
		method = "_OTHER" // as OpenTelemetry's conventions say
	}
	r.span.SetName(method + " " + r.route)
	r.span.SetString("http.request.method", method)
	r.span.SetString("http.route", r.route)
	status := http.Response.StatusCode()
	r.span.SetInt("http.response.status_code", int64(status))
	if status >= fasthttp.StatusInternalServerError {
		r.span.Fail(errAnswer)
	}
	r.span.End()
}

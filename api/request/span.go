// Package request gives each request to the API and the dashboard an id, counts and times it, and traces it as a span that has the calls
// to the stores below it. Without a tracer no span costs anything.
package request

import (
	"context"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/span"
	"linkstream/schema/tracing"
)

// requestSpan is the span of a request.
type requestSpan struct {
	ctx   context.Context
	span  span.Span
	route string
}

type spanKey struct{}

// BeginSpan begins the span of a request that has an id. trusted says whether the peer may decide if the request is recorded. With a nil
// tracer it does nothing.
func BeginSpan(http *fasthttp.RequestCtx, tracer *tracing.Tracer, trusted bool) {
	if tracer == nil {
		return
	}
	header := &http.Request.Header
	ctx := tracer.Continue(context.Background(), string(header.Peek("Traceparent")), string(header.Peek("Tracestate")), trusted)
	r := &requestSpan{route: OtherRoute}
	r.ctx, r.span = span.Root(tracer.Context(ctx), "request", span.Server, time.Now())
	r.span.SetString("linkstream.request_id", ID(http))
	http.SetUserValue(spanKey{}, r)
}

// Context returns the context in which a request is answered. It never ends.
func Context(http *fasthttp.RequestCtx) context.Context {
	if r, ok := http.UserValue(spanKey{}).(*requestSpan); ok {
		return r.ctx
	}
	return context.Background()
}

// SetRoute names the pattern of the request's path.
func SetRoute(http *fasthttp.RequestCtx, route string) {
	if r, ok := http.UserValue(spanKey{}).(*requestSpan); ok {
		r.route = route
	}
}

// methods bounds the names of spans, as routes do.
var methods = map[string]bool{fasthttp.MethodGet: true, fasthttp.MethodHead: true, fasthttp.MethodPost: true, fasthttp.MethodPut: true,
	fasthttp.MethodPatch: true, fasthttp.MethodDelete: true, fasthttp.MethodOptions: true}

var errAnswer = errors.New("the answer is an error of the service")

// EndSpan ends the span of an answered request.
func EndSpan(http *fasthttp.RequestCtx) {
	r, ok := http.UserValue(spanKey{}).(*requestSpan)
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

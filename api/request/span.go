// Package request gives each request to the API and the dashboard an id, counts and times it, and traces it as a span
// that has the calls to the stores below it. Without a tracer no span costs anything.
package request

import (
	"context"
	"errors"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"linkstream/schema/span"
	"linkstream/schema/tracing"
)

// requestSpan is the span of a request.
type requestSpan struct {
	ctx   context.Context
	span  trace.Span
	route string
}

type spanKey struct{}

// BeginSpan begins the span of a request that has an id. trusted says whether the peer may decide if the request is
// recorded. With a nil tracer it does nothing.
func BeginSpan(http *fasthttp.RequestCtx, tracer *tracing.Tracer, trusted bool) {
	if tracer == nil {
		return
	}
	header := &http.Request.Header
	r := &requestSpan{route: OtherRoute}
	traceparent, tracestate := string(header.Peek("Traceparent")), string(header.Peek("Tracestate"))
	r.ctx, r.span = tracer.Request(context.Background(), traceparent, tracestate, trusted)
	r.span.SetAttributes(attribute.String("linkstream.request_id", ID(http)))
	http.SetUserValue(spanKey{}, r)
}

// Inherit gives a request that another one makes the id and the span of the other one.
func Inherit(http, of *fasthttp.RequestCtx) {
	http.SetUserValue(idKey{}, ID(of))
	if r, ok := of.UserValue(spanKey{}).(*requestSpan); ok {
		http.SetUserValue(spanKey{}, &requestSpan{ctx: r.ctx, span: r.span})
	}
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
var methods = map[string]bool{fasthttp.MethodGet: true, fasthttp.MethodHead: true, fasthttp.MethodPost: true,
	fasthttp.MethodPut:   true,
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
	status := http.Response.StatusCode()
	r.span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", r.route),
		attribute.Int("http.response.status_code", status))
	if status >= fasthttp.StatusInternalServerError {
		span.Fail(r.span, errAnswer)
	}
	r.span.End()
}

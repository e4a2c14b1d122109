// Package tracing records the spans of a program with the SDK of OpenTelemetry, and sends them to a collector by OTLP,
// as protobuf over HTTP.
//
// Recording never waits for the collector: ended spans go to the bounded queue of the SDK's batch processor. Spans that
// do not fit into the queue, or that the collector does not accept in time, are dropped and counted. OpenTelemetry's
// own exporter is not used because it links gRPC even for HTTP.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"linkstream/schema/service"
	"linkstream/schema/span"
)

// maxText bounds a text in a span, in bytes.
const maxText = 2048

// Tracer is a span.Tracer.
type Tracer struct {
	provider *trace.TracerProvider
	tracer   api.Tracer
	exporter *exporter
	timeout  time.Duration
}

var _ span.Tracer = (*Tracer)(nil)

// Start returns a Tracer that sends the spans of a program until Close, or nil if cfg has no endpoint. Close and
// Context may be called on nil. register gets its metrics.
func Start(cfg Config, program string, register func(*metrics.Set), log *slog.Logger) (*Tracer, error) {
	endpoint, err := cfg.endpoint()
	if endpoint == "" || err != nil {
		return nil, err
	}
	headers, err := cfg.headers()
	if err != nil {
		return nil, err
	}
	about, err := describe(program)
	if err != nil {
		return nil, err
	}
	t, set := &Tracer{timeout: cfg.Timeout}, metrics.NewSet()
	register(set)
	t.exporter = newExporter(&sender{url: endpoint, headers: headers, client: newClient()}, set, log)
	limits := trace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxText
	t.provider = trace.NewTracerProvider(trace.WithResource(about), trace.WithSpanProcessor(t.exporter.processor(cfg)),
		trace.WithRawSpanLimits(limits), trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(cfg.Sample))))
	t.tracer = t.provider.Tracer("linkstream", api.WithInstrumentationVersion(service.Version()))
	log.Info("sending traces", "endpoint", endpoint)
	return t, nil
}

// describe returns the attributes that all spans of the program share. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// override them.
func describe(program string) (*resource.Resource, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the name of the machine: %w", err)
	}
	own := resource.NewSchemaless(attribute.String("service.name", "linkstream-"+program),
		attribute.String("service.version", service.Version()),
		attribute.String("host.name", host), attribute.Int("process.pid", os.Getpid()))
	env, err := resource.New(context.Background(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return resource.Merge(own, env)
}

// Context returns a context in which spans are recorded.
func (t *Tracer) Context(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return span.With(ctx, t)
}

// Close sends the recorded spans for at most Config.Timeout and drops the rest.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // its only error is the end of ctx
	t.exporter.cancel()
	<-t.exporter.ended
}

// Continue returns a context whose next span belongs to the trace of the client's headers traceparent and tracestate,
// as W3C's Trace Context defines them. An untrusted client could force recording, or mix its spans with those of
// others, so its request begins a trace of its own, with a link to the client's. Invalid headers have no effect.
func (t *Tracer) Continue(ctx context.Context, traceparent, tracestate string, trusted bool) context.Context {
	if traceparent == "" {
		return ctx
	}
	client := propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": traceparent, "tracestate": tracestate})
	remote := api.SpanContextFromContext(client)
	switch {
	case !remote.IsValid():
		return ctx
	case trusted:
		return api.ContextWithRemoteSpanContext(ctx, remote)
	}
	return context.WithValue(ctx, linkKey{}, remote)
}

// linkKey is the context key of the span context that the next span links to.
type linkKey struct{}

var kinds = map[span.Kind]api.SpanKind{span.Internal: api.SpanKindInternal, span.Server: api.SpanKindServer,
	span.Client: api.SpanKindClient, span.Producer: api.SpanKindProducer, span.Consumer: api.SpanKindConsumer}

// Begin implements span.Tracer.
func (t *Tracer) Begin(ctx context.Context, name string, kind span.Kind, began time.Time) (context.Context, span.Span) {
	options := []api.SpanStartOption{api.WithSpanKind(kinds[kind]), api.WithTimestamp(began)}
	if !span.Active(ctx) {
		if remote, ok := ctx.Value(linkKey{}).(api.SpanContext); ok {
			options = append(options, api.WithLinks(api.Link{SpanContext: remote}))
		}
	}
	ctx, s := t.tracer.Start(ctx, name, options...)
	return ctx, recorded{s}
}

// recorded is a span of the SDK.
type recorded struct{ span api.Span }

func (r recorded) SetName(name string)            { r.span.SetName(name) }
func (r recorded) SetString(key, value string)    { r.span.SetAttributes(attribute.String(key, value)) }
func (r recorded) SetInt(key string, value int64) { r.span.SetAttributes(attribute.Int64(key, value)) }
func (r recorded) End()                           { r.span.End() }

func (r recorded) Fail(err error) {
	if err != nil {
		text := err.Error()
		r.span.SetStatus(codes.Error, text[:min(len(text), maxText)])
	}
}

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
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"linkstream/schema/service"
	"linkstream/schema/span"
)

// Tracer records the spans of a program.
type Tracer struct {
	provider *trace.TracerProvider
	tracer   api.Tracer
	exporter *exporter // nil after New
	timeout  time.Duration
}

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
	set := metrics.NewSet()
	register(set)
	exporter := newExporter(&sender{url: endpoint, headers: headers, client: newClient()}, set, log)
	limits := trace.NewSpanLimits()
	limits.AttributeValueLengthLimit = span.MaxText
	t := New(trace.NewTracerProvider(trace.WithResource(about), trace.WithSpanProcessor(exporter.processor(cfg)),
		trace.WithRawSpanLimits(limits), trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(cfg.Sample)))))
	t.exporter, t.timeout = exporter, cfg.Timeout
	log.Info("sending traces", "endpoint", endpoint)
	return t, nil
}

// New returns a Tracer whose spans a provider records.
func New(provider *trace.TracerProvider) *Tracer {
	return &Tracer{provider: provider,
		tracer: provider.Tracer("linkstream", api.WithInstrumentationVersion(service.Version()))}
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
	return span.With(ctx, t.tracer)
}

// Close sends the recorded spans for at most Config.Timeout and drops the rest.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // its only error is the end of ctx
	if t.exporter != nil {
		t.exporter.cancel()
		<-t.exporter.ended
	}
}

// Request begins the span of a request, which belongs to the trace of the client's headers traceparent and tracestate,
// as W3C's Trace Context defines them. An untrusted client could force recording, or mix its spans with those of
// others, so its request begins a trace of its own, with a link to the client's. Invalid headers have no effect.
func (t *Tracer) Request(
	ctx context.Context, traceparent, tracestate string, trusted bool,
) (context.Context, api.Span) {
	options := []api.SpanStartOption{api.WithSpanKind(api.SpanKindServer)}
	if traceparent != "" {
		headers := propagation.MapCarrier{"traceparent": traceparent, "tracestate": tracestate}
		client := api.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), headers))
		switch {
		case !client.IsValid():
		case trusted:
			ctx = api.ContextWithRemoteSpanContext(ctx, client)
		default:
			options = append(options, api.WithLinks(api.Link{SpanContext: client}))
		}
	}
	return t.tracer.Start(t.Context(ctx), "request", options...)
}

package tracing

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
)

// encode returns the request for spans of one Tracer, of which there is at least one.
func encode(spans []trace.ReadOnlySpan) *collector.ExportTraceServiceRequest {
	scope := &otlp.ScopeSpans{Scope: &common.InstrumentationScope{Name: spans[0].InstrumentationScope().Name,
		Version: spans[0].InstrumentationScope().Version}}
	for _, s := range spans {
		scope.Spans = append(scope.Spans, encodeSpan(s))
	}
	return &collector.ExportTraceServiceRequest{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: encodeAttributes(spans[0].Resource().Attributes())},
		ScopeSpans: []*otlp.ScopeSpans{scope},
	}}}
}

func encodeSpan(s trace.ReadOnlySpan) *otlp.Span {
	trace, id := s.SpanContext().TraceID(), s.SpanContext().SpanID()
	encoded := &otlp.Span{TraceId: trace[:], SpanId: id[:], TraceState: s.SpanContext().TraceState().String(),
		Name: text(s.Name()),
		Kind: encodeKind(s.SpanKind()), StartTimeUnixNano: nanoseconds(s.StartTime()),
		EndTimeUnixNano: nanoseconds(s.EndTime()),
		Attributes:      encodeAttributes(s.Attributes()), DroppedAttributesCount: uint32(s.DroppedAttributes()),
		Flags: flags(s.SpanContext(), s.Parent().IsRemote())}
	if parent := s.Parent().SpanID(); parent.IsValid() {
		encoded.ParentSpanId = parent[:]
	}
	for _, link := range s.Links() {
		trace, id := link.SpanContext.TraceID(), link.SpanContext.SpanID()
		encoded.Links = append(encoded.Links, &otlp.Span_Link{TraceId: trace[:], SpanId: id[:],
			TraceState: link.SpanContext.TraceState().String(),
			Flags:      flags(link.SpanContext, link.SpanContext.IsRemote())})
	}
	if status := s.Status(); status.Code == codes.Error {
		encoded.Status = &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR, Message: text(status.Description)}
	}
	return encoded
}

// flags returns the trace flags, and whether the parent is of another process.
func flags(of api.SpanContext, remote bool) uint32 {
	encoded := uint32(of.TraceFlags()) | uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if remote {
		encoded |= uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return encoded
}

// text returns valid UTF-8: a collector refuses a whole batch for one invalid text, such as the method of a hostile
// request.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func nanoseconds(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

func encodeKind(kind api.SpanKind) otlp.Span_SpanKind {
	switch kind {
	case api.SpanKindServer:
		return otlp.Span_SPAN_KIND_SERVER
	case api.SpanKindClient:
		return otlp.Span_SPAN_KIND_CLIENT
	case api.SpanKindProducer:
		return otlp.Span_SPAN_KIND_PRODUCER
	case api.SpanKindConsumer:
		return otlp.Span_SPAN_KIND_CONSUMER
	}
	return otlp.Span_SPAN_KIND_INTERNAL
}

// encodeAttributes encodes integers as integers and all other values as text. Spans have only these two kinds; the
// attributes of a resource may come from the environment.
func encodeAttributes(attributes []attribute.KeyValue) (encoded []*common.KeyValue) {
	for _, a := range attributes {
		value := &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: text(a.Value.String())}}
		if a.Value.Type() == attribute.INT64 {
			value.Value = &common.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		}
		encoded = append(encoded, &common.KeyValue{Key: text(string(a.Key)), Value: value})
	}
	return encoded
}

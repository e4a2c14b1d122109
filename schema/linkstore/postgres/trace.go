package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"linkstream/schema/span"
)

// queryTracer says how long statements take, and how long they wait for a connection. It names statements, which have
// no values in them, but no arguments.
type queryTracer struct{}

var (
	_ pgx.QueryTracer       = queryTracer{}
	_ pgx.BatchTracer       = queryTracer{}
	_ pgxpool.AcquireTracer = queryTracer{}
)

// spanKey is the key of the span of a statement in its context.
type spanKey struct{}

func begin(ctx context.Context, name string) (context.Context, trace.Span) {
	if !span.Active(ctx) {
		return ctx, nil
	}
	ctx, s := span.Start(ctx, name, trace.SpanKindClient)
	s.SetAttributes(attribute.String("db.system.name", "postgresql"))
	return context.WithValue(ctx, spanKey{}, s), s
}

func end(ctx context.Context, err error) {
	if s, ok := ctx.Value(spanKey{}).(trace.Span); ok {
		span.Fail(s, err)
		s.End()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (queryTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	ctx, s := begin(ctx, "postgres "+firstWord(data.SQL))
	if s != nil {
		s.SetAttributes(attribute.String("db.query.text", data.SQL))
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (queryTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	end(ctx, data.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (queryTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	ctx, s := begin(ctx, "postgres batch")
	if s != nil {
		s.SetAttributes(attribute.Int64("db.operation.batch.size", int64(data.Batch.Len())))
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (queryTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (queryTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	end(ctx, data.Err)
}

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (queryTracer) TraceAcquireStart(
	ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData,
) context.Context {
	ctx, _ = begin(ctx, "postgres connection")
	return ctx
}

// TraceAcquireEnd implements pgxpool.AcquireTracer.
func (queryTracer) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	end(ctx, data.Err)
}

// firstWord returns the verb of a statement, such as SELECT.
func firstWord(sql string) string {
	if words := strings.Fields(sql[:min(len(sql), 200)]); len(words) > 0 {
		return words[0]
	}
	return ""
}

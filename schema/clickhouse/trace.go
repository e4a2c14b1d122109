package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"linkstream/schema/span"
)

// tracedConn says how long statements take, for requests and batches that are traced. It names statements, which have
// no values in them.
type tracedConn struct{ driver.Conn }

// traced returns conn, with spans if ctx has a tracer.
func traced(ctx context.Context, conn driver.Conn) driver.Conn {
	if !span.Enabled(ctx) {
		return conn
	}
	return tracedConn{conn}
}

// begin begins the span of a statement, nil if nothing is traced.
func begin(ctx context.Context, statement string) (context.Context, trace.Span) {
	if !span.Active(ctx) {
		return ctx, nil
	}
	verb := ""
	if words := strings.Fields(statement[:min(len(statement), 200)]); len(words) > 0 {
		verb = words[0]
	}
	ctx, s := span.Start(ctx, "clickhouse "+verb, trace.SpanKindClient)
	s.SetAttributes(attribute.String("db.system.name", "clickhouse"),
		attribute.String("db.query.text", statement))
	return ctx, s
}

func end(s trace.Span, err error) {
	if s != nil {
		span.Fail(s, err)
		s.End()
	}
}

// Query implements driver.Conn. The span ends when the rows are closed.
func (c tracedConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	ctx, s := begin(ctx, query)
	rows, err := c.Conn.Query(ctx, query, args...)
	if s == nil || err != nil {
		end(s, err)
		return rows, err
	}
	return &tracedRows{rows, s}, nil
}

// QueryRow implements driver.Conn. The span ends with Scan.
func (c tracedConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	ctx, s := begin(ctx, query)
	row := c.Conn.QueryRow(ctx, query, args...)
	if s == nil {
		return row
	}
	return tracedRow{row, s}
}

// Exec implements driver.Conn.
func (c tracedConn) Exec(ctx context.Context, query string, args ...any) error {
	ctx, s := begin(ctx, query)
	err := c.Conn.Exec(ctx, query, args...)
	end(s, err)
	return err
}

// PrepareBatch implements driver.Conn. The span ends when the batch is closed.
func (c tracedConn) PrepareBatch(
	ctx context.Context, query string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	ctx, s := begin(ctx, query)
	batch, err := c.Conn.PrepareBatch(ctx, query, options...)
	if s == nil || err != nil {
		end(s, err)
		return batch, err
	}
	return &tracedBatch{batch, s}, nil
}

type tracedRows struct {
	driver.Rows
	span trace.Span
}

func (r *tracedRows) Close() error {
	err := r.Rows.Close()
	if r.span != nil {
		span.Fail(r.span, r.Err())
		r.span.End()
		r.span = nil
	}
	return err
}

type tracedRow struct {
	driver.Row
	span trace.Span
}

func (r tracedRow) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	if !errors.Is(err, sql.ErrNoRows) {
		span.Fail(r.span, err)
	}
	r.span.End()
	return err
}

type tracedBatch struct {
	driver.Batch
	span trace.Span
}

func (b *tracedBatch) Send() error {
	b.span.SetAttributes(attribute.Int64("db.operation.batch.size", int64(b.Rows())))
	err := b.Batch.Send()
	span.Fail(b.span, err)
	return err
}

func (b *tracedBatch) Close() error {
	err := b.Batch.Close()
	if b.span != nil {
		b.span.End()
		b.span = nil
	}
	return err
}

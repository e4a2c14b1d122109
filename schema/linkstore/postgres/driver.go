// Package postgres opens link stores in PostgreSQL 15 or later.
package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"linkstream/schema/linkstore"
)

// DB is a linkstore.DB.
type DB struct {
	pool  *pgxpool.Pool
	texts sync.Map // texts as Postgres takes them, by the texts of linkstore
	conn
}

var _ linkstore.DB = (*DB)(nil)

// NewDB returns the database of a pool.
func NewDB(pool *pgxpool.Pool) *DB {
	db := &DB{pool: pool}
	db.conn = conn{db: db, on: pool}
	return db
}

// Readers implements linkstore.DB.
func (db *DB) Readers() int { return int(db.pool.Config().MaxConns) }

// Close waits for calls in progress and closes the connections.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

// Update implements linkstore.DB.
func (db *DB) Update(ctx context.Context, f func(linkstore.Conn) error) error {
	return db.transact(ctx, pgx.TxOptions{}, f)
}

// View implements linkstore.DB.
func (db *DB) View(ctx context.Context, f func(linkstore.Conn) error) error {
	return db.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
}

func (db *DB) transact(ctx context.Context, options pgx.TxOptions, f func(linkstore.Conn) error) error {
	return coded(pgx.BeginTxFunc(ctx, db.pool, options, func(tx pgx.Tx) error { return f(conn{db: db, on: tx}) }))
}

// text returns a statement as Postgres takes it. Only texts that are constants are kept.
func (db *DB) text(s linkstore.Statement) string {
	if s.Variable {
		return spellings.Expand(s.Text)
	}
	if known, ok := db.texts.Load(s.Text); ok {
		return known.(string)
	}
	text := spellings.Expand(s.Text)
	db.texts.Store(s.Text, text)
	return text
}

// conn is a linkstore.Conn: a transaction, or the pool.
type conn struct {
	db *DB
	on interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	}
}

// Query implements linkstore.Conn.
func (c conn) Query(ctx context.Context, s linkstore.Statement) (linkstore.Rows, error) {
	found, err := c.on.Query(ctx, c.db.text(s), bind(s.Args)...)
	if err != nil {
		return nil, coded(err)
	}
	return rows{found}, nil
}

// Exec implements linkstore.Conn.
func (c conn) Exec(ctx context.Context, s linkstore.Statement) (int64, error) {
	tag, err := c.on.Exec(ctx, c.db.text(s), bind(s.Args)...)
	return tag.RowsAffected(), coded(err)
}

// Send implements linkstore.Conn. The server executes the statements outside of a transaction as one transaction,
// because one message ends them.
func (c conn) Send(ctx context.Context, b *linkstore.Batch) error {
	if len(b.Parts) == 0 {
		return nil
	}
	var queries pgx.Batch
	for i := range b.Parts {
		queries.Queue(c.db.text(required(b.Parts[i])), bind(b.Parts[i].Args)...)
	}
	results := c.on.SendBatch(ctx, &queries)
	var outcome error // of the functions, which undo nothing
	for i := range b.Parts {
		of, err := result(results, &b.Parts[i])
		if err != nil {
			return coded(errors.Join(err, results.Close()))
		}
		if outcome == nil {
			outcome = of
		}
	}
	if err := results.Close(); err != nil {
		return coded(err)
	}
	return outcome
}

// required returns the statement of a part, which fails in the server if it must change a row and changes none.
func required(part linkstore.Part) linkstore.Statement {
	if part.Must {
		part.Text = "WITH changed AS (" + part.Text + " RETURNING 1) SELECT 1 / count(*) FROM changed"
	}
	return part.Statement
}

// result reads the result of a part. outcome is the error of its function.
func result(results pgx.BatchResults, part *linkstore.Part) (outcome, err error) {
	if part.Rows == nil {
		tag, err := results.Exec()
		if err == nil && part.Changed != nil {
			outcome = part.Changed(tag.RowsAffected())
		}
		return outcome, err
	}
	found, err := results.Query()
	if err != nil {
		return nil, err
	}
	outcome = part.Rows(rows{found})
	found.Close() // which reads the rows that the function has left
	return outcome, found.Err()
}

// rows are linkstore.Rows.
type rows struct{ pgx.Rows }

func (r rows) Err() error { return coded(r.Rows.Err()) }

func (r rows) Scan(into ...any) error {
	for i := range into {
		if at, ok := into[i].(*time.Time); ok {
			into[i] = utc{at}
		}
	}
	return coded(r.Rows.Scan(into...))
}

// Package sqlite opens link stores in SQLite files.
//
// Several processes may open one file. It is in WAL mode, so readers never wait, and every write is one immediate
// transaction that waits for the write lock.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitefile"
)

// DB is a linkstore.DB: one connection that writes, because SQLite has one writer at a time, and a few that read the
// state committed before their transaction began.
type DB struct {
	file        *sqlitefile.File
	texts       sync.Map // text by the text of linkstore
	write, read pool
}

var _ linkstore.DB = (*DB)(nil)

// NewDB returns the database in a file.
func NewDB(file *sqlitefile.File) *DB {
	return &DB{file: file, write: pool{DB: file.Write}, read: pool{DB: file.Read}}
}

// Readers implements linkstore.DB.
func (db *DB) Readers() int { return sqlitefile.Readers }

// Close implements linkstore.DB.
func (db *DB) Close() error { return db.file.Close() }

// Query implements linkstore.Conn.
func (db *DB) Query(ctx context.Context, s linkstore.Statement) (linkstore.Rows, error) {
	return db.conn(&db.read, nil).Query(ctx, s)
}

// Exec implements linkstore.Conn.
func (db *DB) Exec(ctx context.Context, s linkstore.Statement) (int64, error) {
	return db.conn(&db.write, nil).Exec(ctx, s)
}

// Send implements linkstore.Conn.
func (db *DB) Send(ctx context.Context, b *linkstore.Batch) error {
	if len(b.Parts) == 0 {
		return nil
	}
	var outcome error // of the functions, which undo nothing
	err := db.transact(ctx, &db.write, nil, func(c *conn) (err error) {
		outcome, err = c.send(ctx, b)
		return err
	})
	if err != nil {
		return err
	}
	return outcome
}

// Update implements linkstore.DB.
func (db *DB) Update(ctx context.Context, f func(linkstore.Conn) error) error {
	return db.transact(ctx, &db.write, nil, func(c *conn) error { return f(c) })
}

// View implements linkstore.DB.
func (db *DB) View(ctx context.Context, f func(linkstore.Conn) error) error {
	return db.transact(ctx, &db.read, &sql.TxOptions{ReadOnly: true}, func(c *conn) error { return f(c) })
}

func (db *DB) transact(ctx context.Context, p *pool, options *sql.TxOptions, f func(*conn) error) error {
	tx, err := p.BeginTx(ctx, options)
	if err != nil {
		return sqlitefile.Coded(err)
	}
	c := db.conn(p, tx)
	if err = f(c); err != nil {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			err = errors.Join(err, sqlitefile.Coded(rollback))
		}
	} else {
		err = sqlitefile.Coded(tx.Commit())
	}
	for _, text := range c.unprepared {
		_, _ = p.statement(ctx, text) // if it fails, the next transaction tries again
	}
	return err
}

func (db *DB) conn(p *pool, tx *sql.Tx) *conn { return &conn{db: db, pool: p, tx: tx} }

// text returns a statement as SQLite takes it. Only texts that are constants are kept.
func (db *DB) text(s linkstore.Statement) text {
	if s.Variable {
		return translate(s.Text)
	}
	if known, ok := db.texts.Load(s.Text); ok {
		return known.(text)
	}
	known, _ := db.texts.LoadOrStore(s.Text, translate(s.Text))
	return known.(text)
}

// pool is a pool of connections that keeps statements prepared: SQLite takes longer to parse and plan most statements
// than to execute them.
type pool struct {
	*sql.DB
	prepared sync.Map // *sql.Stmt by text
}

// statement returns a statement as each connection that has executed it keeps it, until the file is closed. The caller
// must have no connection: preparing takes one, and the pool could deadlock.
func (p *pool) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if known := p.known(text); known != nil {
		return known, nil
	}
	statement, err := p.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	known, again := p.prepared.LoadOrStore(text, statement)
	if again {
		err = statement.Close()
	}
	return known.(*sql.Stmt), err
}

// known returns a statement that was prepared before, otherwise nil.
func (p *pool) known(text string) *sql.Stmt {
	known, _ := p.prepared.Load(text)
	statement, _ := known.(*sql.Stmt)
	return statement
}

// conn is a linkstore.Conn: a transaction, or a pool.
type conn struct {
	db         *DB
	pool       *pool
	tx         *sql.Tx              // nil: a pool
	statements map[string]*sql.Stmt // of the transaction, by text
	unprepared []string             // texts that this transaction prepares for itself, and the next one finds prepared
}

// prepared returns a statement that is kept prepared, or nil for one that is not.
func (c *conn) prepared(ctx context.Context, text string, s linkstore.Statement) (*sql.Stmt, error) {
	switch {
	case s.Variable:
		return nil, nil
	case c.tx == nil:
		return c.pool.statement(ctx, text)
	}
	if s := c.statements[text]; s != nil {
		return s, nil
	}
	if c.statements == nil {
		c.statements = map[string]*sql.Stmt{}
	}
	if known := c.pool.known(text); known != nil {
		c.statements[text] = c.tx.StmtContext(ctx, known)
		return c.statements[text], nil
	}
	c.unprepared = append(c.unprepared, text)
	statement, err := c.tx.PrepareContext(ctx, text)
	if err == nil {
		c.statements[text] = statement
	}
	return statement, err
}

// Query implements linkstore.Conn.
func (c *conn) Query(ctx context.Context, s linkstore.Statement) (linkstore.Rows, error) {
	found, err := c.query(ctx, s)
	if err != nil {
		return nil, sqlitefile.Coded(err)
	}
	return rows{found}, nil
}

func (c *conn) query(ctx context.Context, s linkstore.Statement) (*sql.Rows, error) {
	text := c.db.text(s)
	args, err := text.bind(s.Args)
	if err != nil {
		return nil, err
	}
	prepared, err := c.prepared(ctx, text.sql, s)
	switch {
	case err != nil:
		return nil, err
	case prepared != nil:
		return prepared.QueryContext(ctx, args...)
	case c.tx != nil:
		return c.tx.QueryContext(ctx, text.sql, args...)
	default:
		return c.pool.QueryContext(ctx, text.sql, args...)
	}
}

// Exec implements linkstore.Conn.
func (c *conn) Exec(ctx context.Context, s linkstore.Statement) (changed int64, err error) {
	result, err := c.exec(ctx, s)
	if err == nil {
		changed, err = result.RowsAffected()
	}
	return changed, sqlitefile.Coded(err)
}

func (c *conn) exec(ctx context.Context, s linkstore.Statement) (sql.Result, error) {
	text := c.db.text(s)
	args, err := text.bind(s.Args)
	if err != nil {
		return nil, err
	}
	prepared, err := c.prepared(ctx, text.sql, s)
	switch {
	case err != nil:
		return nil, err
	case prepared != nil:
		return prepared.ExecContext(ctx, args...)
	case c.tx != nil:
		return c.tx.ExecContext(ctx, text.sql, args...)
	default:
		return c.pool.ExecContext(ctx, text.sql, args...)
	}
}

// Send implements linkstore.Conn.
func (c *conn) Send(ctx context.Context, b *linkstore.Batch) error {
	outcome, err := c.send(ctx, b)
	return errors.Join(err, outcome)
}

// send executes a batch. outcome is the first error of its functions.
func (c *conn) send(ctx context.Context, b *linkstore.Batch) (outcome, err error) {
	for i := range b.Parts {
		part := &b.Parts[i]
		var of error
		if part.Rows != nil {
			of, err = c.read(ctx, part)
		} else {
			var changed int64
			switch changed, err = c.Exec(ctx, part.Statement); {
			case err != nil:
			case part.Must && changed == 0:
				err = linkstore.ErrNoRow
			case part.Changed != nil:
				of = part.Changed(changed)
			}
		}
		if err != nil {
			return nil, err
		}
		if outcome == nil {
			outcome = of
		}
	}
	return outcome, nil
}

// read executes a part that returns rows, also those that its function leaves.
func (c *conn) read(ctx context.Context, part *linkstore.Part) (outcome, err error) {
	found, err := c.Query(ctx, part.Statement)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	outcome = part.Rows(unclosed{found})
	for found.Next() {
	}
	return outcome, found.Err()
}

// rows are linkstore.Rows.
type rows struct{ *sql.Rows }

func (r rows) Close()     { _ = r.Rows.Close() } // Err has the error
func (r rows) Err() error { return sqlitefile.Coded(r.Rows.Err()) }

func (r rows) Scan(into ...any) error {
	for i := range into {
		if at, ok := into[i].(*time.Time); ok {
			into[i] = unixMillis{at}
		}
	}
	return sqlitefile.Coded(r.Rows.Scan(into...))
}

// unclosed are rows that their reader cannot close.
type unclosed struct{ linkstore.Rows }

func (unclosed) Close() {}

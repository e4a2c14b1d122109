package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // registers the driver

	"linkstream/schema/migration"
)

// database is an open file: one connection that writes, because SQLite has one writer at a time, and a few that read
// the state committed before their transaction began.
type database struct {
	path        string
	write, read *sql.DB
	prepared    sync.Map // *sql.Stmt of read by text, see statement
}

// openFile opens or creates the file and brings its schema up to date.
func openFile(ctx context.Context, path, synchronous string, migrations fs.FS) (*database, error) {
	return open(path, synchronous, func(db *database) error { return db.migrate(ctx, migrations) })
}

// openCurrent opens the file if it exists and its schema is that of migrations. It changes nothing.
func openCurrent(ctx context.Context, path, synchronous string, migrations fs.FS) (*database, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return open(path, synchronous, func(db *database) error { return migration.Check(ctx, goose.DialectSQLite3, db.read, migrations) })
}

// open opens or creates the file and calls check with it. synchronous is the value of SQLite's pragma. Transactions
// of a process that was killed before it synced are visible to later processes, which rely on them, so open syncs them first.
func open(path, synchronous string, check func(*database) error) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := syncLog(path); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, err)
	}
	db := &database{path: path}
	if db.write, err = sql.Open("sqlite", writerDSN(path, synchronous)); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, err)
	}
	db.write.SetMaxOpenConns(1)
	if db.read, err = sql.Open("sqlite", readerDSN(path)); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, errors.Join(err, db.write.Close()))
	}
	db.read.SetMaxOpenConns(readers)
	db.read.SetMaxIdleConns(readers)
	if err := check(db); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, errors.Join(err, db.close()))
	}
	return db, nil
}

// syncLog syncs the write-ahead log of a file, if there is one. The file itself needs no sync: SQLite syncs it before it reuses the log.
func syncLog(path string) error {
	for _, path := range []string{path + "-wal", filepath.Dir(path)} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// close closes the writer last: the last connection moves the write-ahead log into the file.
func (db *database) close() error {
	return errors.Join(db.read.Close(), db.write.Close())
}

// update runs f in a transaction that holds the write lock from its beginning.
func (db *database) update(ctx context.Context, f func(*sql.Tx) error) error {
	return transact(ctx, db.write, nil, f)
}

// view runs f in a transaction whose queries read one snapshot.
func (db *database) view(ctx context.Context, f func(*snapshot) error) error {
	s := &snapshot{db: db}
	err := transact(ctx, db.read, &sql.TxOptions{ReadOnly: true}, func(tx *sql.Tx) error {
		s.Tx = tx
		return f(s)
	})
	for _, text := range s.unprepared {
		_, _ = db.statement(ctx, text) // if it fails, the next transaction tries again
	}
	return err
}

// statement returns a query as read executes it. SQLite takes longer to parse and plan most queries than to execute them, so the text
// must be a constant: it stays prepared, on each connection that has executed it, until the file is closed. The caller has no
// connection yet: with all of them waiting here, there would be none to prepare on.
func (db *database) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if known, ok := db.prepared.Load(text); ok {
		return known.(*sql.Stmt), nil
	}
	statement, err := db.read.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	known, again := db.prepared.LoadOrStore(text, statement)
	if again {
		err = statement.Close()
	}
	return known.(*sql.Stmt), err
}

// query executes a constant query, see statement.
func (db *database) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	statement, err := db.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

// queryRow executes a constant query, see statement.
func (db *database) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	statement, err := db.statement(ctx, text)
	if err != nil {
		return db.read.QueryRowContext(ctx, text, args...) // only a query can return an error as a row
	}
	return statement.QueryRowContext(ctx, args...)
}

// snapshot is a transaction that reads.
type snapshot struct {
	*sql.Tx
	db         *database
	unprepared []string // constant queries that the next transaction finds prepared
}

// statement returns a constant query, see database.statement; nil if it is not prepared yet.
func (s *snapshot) statement(ctx context.Context, text string) *sql.Stmt {
	if known, ok := s.db.prepared.Load(text); ok {
		return s.StmtContext(ctx, known.(*sql.Stmt))
	}
	s.unprepared = append(s.unprepared, text)
	return nil
}

// query executes a constant query.
func (s *snapshot) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if statement := s.statement(ctx, text); statement != nil {
		return statement.QueryContext(ctx, args...)
	}
	return s.QueryContext(ctx, text, args...)
}

// queryRow executes a constant query.
func (s *snapshot) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	if statement := s.statement(ctx, text); statement != nil {
		return statement.QueryRowContext(ctx, args...)
	}
	return s.QueryRowContext(ctx, text, args...)
}

func transact(ctx context.Context, pool *sql.DB, options *sql.TxOptions, f func(*sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// forEachRow calls scan for each row and closes rows. Its first two arguments are the results of a query.
func forEachRow(rows *sql.Rows, err error, scan func() error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// execer is a pool, where each statement is its own transaction, or a transaction. Rows are inserted by Exec and not by a
// query with RETURNING, because Exec also returns an error of the commit.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func insertedID(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// oneRow returns sql.ErrNoRows for a statement that changed no row.
func oneRow(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		return sql.ErrNoRows
	}
	return err
}

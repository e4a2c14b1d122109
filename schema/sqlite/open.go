// Package sqlite keeps links, accounts and what belongs to them (Links) and counted clicks (Clicks) in SQLite files.
//
// Several processes may have one file open: the file is in WAL mode, so readers never wait, and each write is one
// immediate transaction that waits its turn.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"linkstream/schema/filelock"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // registers the driver
)

const (
	busyTimeout = "10000" // milliseconds for which a write waits for one of another process
	readers     = 4       // connections that read; an answer takes well under a millisecond each
)

// database is an open file: one connection that writes, since SQLite has one writer at a time, and a few that read
// what was committed when they began.
type database struct {
	path        string
	write, read *sql.DB
}

// openFile opens or creates the file and brings its schema up to date. synchronous is the pragma's value.
func openFile(ctx context.Context, path, synchronous string, migrations fs.FS) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db := &database{path: path}
	db.write, err = sql.Open("sqlite", dsn(path, url.Values{
		"_busy_timeout": {busyTimeout}, "_foreign_keys": {"1"}, "_dqs": {"0"}, "_txlock": {"immediate"},
		"_journal_mode": {"WAL"}, "_synchronous": {synchronous},
		// A block of counters changes pages all over the file: 64 MiB of them stay in memory, statements keep theirs for
		// undoing in memory, too, and the log is moved into the file after 32 MiB.
		"_pragma": {"cache_size(-65536)", "temp_store(MEMORY)", "wal_autocheckpoint(8192)"},
	}))
	if err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, err)
	}
	db.write.SetMaxOpenConns(1)
	db.read, err = sql.Open("sqlite", dsn(path, url.Values{
		"_busy_timeout": {busyTimeout}, "_dqs": {"0"}, "_query_only": {"1"},
	}))
	if err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, errors.Join(err, db.write.Close()))
	}
	db.read.SetMaxOpenConns(readers)
	db.read.SetMaxIdleConns(readers)
	if err := db.migrate(ctx, migrations); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, errors.Join(err, db.close()))
	}
	return db, nil
}

// dsn escapes the path, in which a question mark would else begin the options.
func dsn(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: options.Encode()}).String()
}

// migrate applies the migrations that the file has not seen. A lock keeps other processes from doing so at the same
// time, and from switching a new file to WAL, for which SQLite itself does not wait.
func (db *database) migrate(ctx context.Context, migrations fs.FS) (err error) {
	lock, err := filelock.Acquire(ctx, db.path+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	provider, err := goose.NewProvider(goose.DialectSQLite3, db.write, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if current > known {
		return fmt.Errorf("its schema has version %d, made by a newer linkstream: this one knows %d", current, known)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from version %d to %d: %w", current, known, err)
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

// view runs f in a transaction whose queries all see the same moment.
func (db *database) view(ctx context.Context, f func(*sql.Tx) error) error {
	return transact(ctx, db.read, &sql.TxOptions{ReadOnly: true}, f)
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

// each takes the outcome of a query, calls scan for each row, and closes the rows.
func each(rows *sql.Rows, err error, scan func() error) error {
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

// execer is a pool, where each statement is a transaction of its own, or a transaction. A row is inserted by Exec rather
// than by a query with RETURNING: Exec runs to the end, so an error of the commit is seen.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func insertedID(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// oneRow reports a statement that changed no row as sql.ErrNoRows.
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

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	_ "modernc.org/sqlite" // registers the driver
)

// database is an open file: one connection that writes, because SQLite has one writer at a time, and a few that read
// what was committed before their transaction began.
type database struct {
	path        string
	write, read *sql.DB
}

// openFile opens or creates the file and brings its schema up to date. synchronous is the value of SQLite's pragma.
func openFile(ctx context.Context, path, synchronous string, migrations fs.FS) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
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
	if err := db.migrate(ctx, migrations); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, errors.Join(err, db.close()))
	}
	return db, nil
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

package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"sync"

	"linkstream/schema/sqlitefile"
)

// database is an open file: one connection that writes, because SQLite has one writer at a time, and a few that read
// the state committed before their transaction began.
type database struct {
	file        *sqlitefile.File
	write, read *sql.DB  // of the file
	prepared    sync.Map // *sql.Stmt of read by text, see statement
}

// openDatabase opens a file of clicks.
func openDatabase(ctx context.Context, open sqlitefile.Opener, path string) (*database, error) {
	file, err := open(ctx, path, migrations())
	if err != nil {
		return nil, err
	}
	return &database{file: file, write: file.Write, read: file.Read}, nil
}

func (db *database) close() error { return db.file.Close() }

//go:embed migrations
var migrationFiles embed.FS

// migrations returns the files of all migrations.
func migrations() fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// wrap adds a code and the operation that failed to err; nil stays nil.
func wrap(err error, format string, args ...any) error { return sqlitefile.Wrap(err, format, args...) }

// withExisting calls use with the database in an existing file, whose schema may be of any release.
func withExisting(path string, use func(*sql.DB) error) error { return sqlitefile.Existing(path, use) }

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

// statement returns a query as read executes it. SQLite takes longer to parse and plan most queries than to execute
// them, so the text must be a constant: it stays prepared, on each connection that has executed it, until the file is
// closed. The caller has no connection yet: with all of them waiting here, there would be none to prepare on.
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

func insertedID(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

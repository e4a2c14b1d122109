// Package sqlitefile opens SQLite files, and copies and freezes them. Stores of links and of clicks are such files.
//
// Several processes may open one file. It is in WAL mode, so readers never wait, and every write is one immediate
// transaction that waits for the write lock.
package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // registers the driver

	"linkstream/schema/migration"
)

// File is an open file: one connection that writes, because SQLite has one writer at a time, and Readers that read
// the state committed before their transaction began. Transactions of Write begin with the write lock.
type File struct {
	Path        string
	Write, Read *sql.DB
}

// Opener is Open or OpenCurrent.
type Opener func(ctx context.Context, path string, migrations fs.FS) (*File, error)

// Open opens the file at path, which it creates if needed in an existing folder, and brings its schema up to date.
func Open(ctx context.Context, path string, migrations fs.FS) (*File, error) {
	return open(path, func(f *File) error { return f.migrate(ctx, migrations) })
}

// OpenCurrent opens the existing file at path if its schema is that of migrations. It changes nothing.
func OpenCurrent(ctx context.Context, path string, migrations fs.FS) (*File, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return open(path, func(f *File) error { return migration.Check(ctx, goose.DialectSQLite3, f.Read, migrations) })
}

// open opens or creates the file and calls check with it. Transactions of a process that was killed before it synced
// are visible to later processes, which rely on them, so open syncs them first.
func open(path string, check func(*File) error) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := syncLog(path); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, err)
	}
	f := &File{Path: path}
	if f.Write, err = sql.Open("sqlite", writerDSN(path)); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, err)
	}
	f.Write.SetMaxOpenConns(1)
	if f.Read, err = sql.Open("sqlite", readerDSN(path)); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, errors.Join(err, f.Write.Close()))
	}
	f.Read.SetMaxOpenConns(Readers)
	f.Read.SetMaxIdleConns(Readers)
	if err := check(f); err != nil {
		return nil, fmt.Errorf("open database %q: %w", path, errors.Join(err, f.Close()))
	}
	return f, nil
}

// Close closes the writer last: the last connection moves the write-ahead log into the file.
func (f *File) Close() error { return errors.Join(f.Read.Close(), f.Write.Close()) }

// syncLog syncs the write-ahead log of a file, if there is one. The file itself needs no sync: SQLite syncs it before
// it reuses the log.
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

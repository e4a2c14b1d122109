// Package sqlitetest opens files of SQLite for tests. Migrating a new file takes most of the CPU time of a short test, and dozens of
// syncs of the disk, so a new file is a copy of one that the process has migrated once.
package sqlitetest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

// Open is sqlite.Open.
func Open(ctx context.Context, path string) (*sqlite.Store, error) {
	if err := create(path, newLinks); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path)
}

// OpenClickStore is sqlite.OpenClickStore.
func OpenClickStore(ctx context.Context, path string) (*sqlite.ClickStore, error) {
	if err := create(path, newClicks); err != nil {
		return nil, err
	}
	return sqlite.OpenClickStore(ctx, path)
}

// New returns a new store, which is closed after the test.
func New(tb testing.TB) *sqlite.Store {
	return opened(tb, Open, filepath.Join(tb.TempDir(), "links.db"))
}

// NewClickStore returns a new store of clicks, which is closed after the test.
func NewClickStore(tb testing.TB) *sqlite.ClickStore {
	return opened(tb, OpenClickStore, filepath.Join(tb.TempDir(), "clicks.db"))
}

// At opens the store at path. Stores at one path stand for processes. It is closed after the test, unless the test has closed it.
func At(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	store, err := Open(tb.Context(), path)
	testkit.Must(tb, err)
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func opened[S io.Closer](tb testing.TB, open func(context.Context, string) (S, error), path string) S {
	tb.Helper()
	store, err := open(tb.Context(), path)
	testkit.Must(tb, err)
	tb.Cleanup(func() { testkit.Close(tb, store) })
	return store
}

// The content of new files.
var (
	newLinks  = sync.OnceValues(func() ([]byte, error) { return migrated(sqlite.Open) })
	newClicks = sync.OnceValues(func() ([]byte, error) { return migrated(sqlite.OpenClickStore) })
)

// migrated returns the content of a file that open has created.
func migrated[Store io.Closer](open func(ctx context.Context, path string) (Store, error)) (content []byte, err error) {
	dir, err := os.MkdirTemp("", "sqlitetest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "new.db")
	store, err := open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil { // which moves the write-ahead log into the file
		return nil, err
	}
	return os.ReadFile(path)
}

// create creates the file at path with the content, unless it exists. Nobody sees a part of it.
func create(path string, content func() ([]byte, error)) (err error) {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	data, err := content()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "new")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Link(file.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(file.Name()))
}

// Package sqlitetest opens files of SQLite for tests. Migrating a new file takes most of the CPU time of a short test,
// and dozens of syncs of the disk, so a new file is a copy of one that the process has migrated once.
package sqlitetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"linkstream/schema/linkstore"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitefile"
	"linkstream/schema/testkit"
)

// Open is linksqlite.Open.
func Open(ctx context.Context, path string) (*linkstore.Store, error) {
	if err := create(path, newLinks); err != nil {
		return nil, err
	}
	return linksqlite.Open(ctx, path)
}

// OpenClickStore is sqlite.OpenClickStore.
func OpenClickStore(ctx context.Context, path string) (*sqlite.ClickStore, error) {
	if err := create(path, newClicks); err != nil {
		return nil, err
	}
	return sqlite.OpenClickStore(ctx, path)
}

// New returns a new store, which is closed after the test.
func New(tb testing.TB) *linkstore.Store {
	return opened(tb, Open, filepath.Join(tb.TempDir(), "links.db"))
}

// NewClickStore returns a new store of clicks, which is closed after the test.
func NewClickStore(tb testing.TB) *sqlite.ClickStore {
	return opened(tb, OpenClickStore, filepath.Join(tb.TempDir(), "clicks.db"))
}

// At opens the store at path. Stores at one path stand for processes. It is closed after the test, unless the test has
// closed it.
func At(tb testing.TB, path string) *linkstore.Store {
	tb.Helper()
	store, err := Open(tb.Context(), path)
	testkit.Must(tb, err)
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// Raw opens a file without a store.
func Raw(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	raw, err := sql.Open("sqlite", path+"?_busy_timeout=10000")
	testkit.Must(tb, err)
	tb.Cleanup(func() { _ = raw.Close() })
	return raw
}

// MigrateTo creates a file at a version of a schema. Version 0 creates no file.
func MigrateTo(ctx context.Context, path string, migrations fs.FS, version int64) error {
	names, err := fs.Glob(migrations, "*.sql")
	if err != nil || version == 0 {
		return err
	}
	files := fstest.MapFS{}
	for _, name := range names[:version] {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return err
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	file, err := sqlitefile.Open(ctx, path, files)
	if err != nil {
		return err
	}
	return file.Close()
}

// Catalogue returns the columns of all tables and the statements that made tables and indexes.
func Catalogue(t testing.TB, path string) (all []string) {
	t.Helper()
	rows, err := Raw(t, path).QueryContext(t.Context(), `
		SELECT concat_ws(' ', type, name, tbl_name, sql) FROM sqlite_schema
		UNION ALL
		SELECT concat_ws(' ', 'column', t.name, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk)
		FROM sqlite_schema t, pragma_table_xinfo(t.name) c WHERE t.type = 'table'
		ORDER BY 1`)
	testkit.Must(t, err)
	defer testkit.Close(t, rows)
	for rows.Next() {
		var row string
		testkit.Must(t, rows.Scan(&row))
		all = append(all, row)
	}
	testkit.Must(t, rows.Err())
	return all
}

// Rows returns the rows of all tables, in an order that does not change.
func Rows(tb testing.TB, raw *sql.DB) (all []string) {
	tb.Helper()
	for _, table := range query(tb, raw, `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`) {
		for _, row := range query(tb, raw, `SELECT * FROM "`+table+`"`) {
			all = append(all, table+" "+row)
		}
	}
	slices.Sort(all)
	return all
}

// query returns the rows of a query, the values of each with spaces between them.
func query(tb testing.TB, raw *sql.DB, text string) (all []string) {
	tb.Helper()
	rows, err := raw.QueryContext(tb.Context(), text)
	testkit.Must(tb, err)
	defer testkit.Close(tb, rows)
	columns, err := rows.Columns()
	testkit.Must(tb, err)
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		testkit.Must(tb, rows.Scan(into...))
		row := fmt.Sprintln(values...)
		all = append(all, strings.TrimSuffix(row, "\n"))
	}
	testkit.Must(tb, rows.Err())
	return all
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
	newLinks  = sync.OnceValues(func() ([]byte, error) { return migrated(linksqlite.Open) })
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

// create creates the file at path with the content, unless it exists. Readers see the whole content or no file.
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

package migration

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
)

// Files returns a migration per SQL file in the root of files. Its driver executes a whole file at once, in a
// transaction: goose would parse each file twice, with a buffer of 4 MiB each time.
func Files(files fs.FS) (all []*goose.Migration, err error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		version, err := goose.NumericComponent(path.Base(name))
		if err != nil {
			return nil, err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		up := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, string(text))
			return err
		}
		all = append(all, goose.NewGoMigration(version, &goose.GoFunc{RunTx: up}, nil))
	}
	return all, nil
}

// Folder has the texts of files by their names.
type Folder map[string]string

// Open implements fs.FS. The file has no properties besides its text.
func (f Folder) Open(name string) (fs.File, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return file{strings.NewReader(text)}, nil
}

// Glob implements fs.GlobFS.
func (f Folder) Glob(pattern string) (names []string, err error) {
	for name := range f {
		matches, err := path.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		if matches {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// file is a file of a Folder.
type file struct{ *strings.Reader }

func (file) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

func (file) Close() error { return nil }

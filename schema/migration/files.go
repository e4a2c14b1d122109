package migration

import (
	"context"
	"database/sql"
	"io/fs"
	"path"

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

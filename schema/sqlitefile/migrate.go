package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"linkstream/schema/filelock"
	"linkstream/schema/migration"
)

// migrate applies the migrations that the file does not have. A lock on another file keeps other processes from doing
// so at the same time, and from switching a new file to WAL mode, for which SQLite does not wait.
func (f *File) migrate(ctx context.Context, migrations fs.FS) (err error) {
	lock, err := filelock.Acquire(ctx, f.Path+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	all, err := migration.Files(migrations)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, f.Write, nil, goose.WithGoMigrations(all...),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return migration.Up(ctx, provider)
}

package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"linkstream/schema/filelock"
	"linkstream/schema/migration"
)

//go:embed migrations
var migrationFiles embed.FS

// migrations returns the files of all migrations of "links" or "clicks".
func migrations(of string) fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations/"+of)
	if err != nil {
		panic(err) // of is a constant
	}
	return files
}

// migrate applies the migrations that the file does not have. A lock on another file keeps other processes from doing so
// at the same time, and from switching a new file to WAL mode, for which SQLite does not wait.
func (db *database) migrate(ctx context.Context, migrations fs.FS) (err error) {
	lock, err := filelock.Acquire(ctx, db.path+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	all, err := migration.Files(migrations)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.write, nil, goose.WithGoMigrations(all...),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return migration.Up(ctx, provider)
}

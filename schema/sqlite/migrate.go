package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"linkstream/schema/filelock"
)

//go:embed migrations
var migrationFiles embed.FS

// migrations returns the files of all migrations of "links" or "clicks", which are frozen: see TestMigrations.
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

	provider, err := goose.NewProvider(goose.DialectSQLite3, db.write, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	current, latest, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if current > latest {
		return fmt.Errorf("the schema has version %d, made by a newer linkstream: this one knows %d", current, latest)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from version %d to %d: %w", current, latest, err)
	}
	return nil
}

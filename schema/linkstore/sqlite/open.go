package sqlite

import (
	"context"
	"embed"
	"io/fs"

	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitefile"
)

//go:embed migrations
var migrationFiles embed.FS

// migrations returns the files of all migrations.
func migrations() fs.FS { return linkstore.Migrations(migrationFiles, spellings) }

// Open opens the file at path, which it creates if needed in an existing folder, and brings its schema up to date.
func Open(ctx context.Context, path string) (*linkstore.Store, error) {
	return open(ctx, path, sqlitefile.Open)
}

// OpenCurrent opens the existing file at path without changing it, and refuses the schema of another release.
func OpenCurrent(ctx context.Context, path string) (*linkstore.Store, error) {
	return open(ctx, path, sqlitefile.OpenCurrent)
}

func open(ctx context.Context, path string, open sqlitefile.Opener) (*linkstore.Store, error) {
	file, err := open(ctx, path, migrations())
	if err != nil {
		return nil, err
	}
	return linkstore.New(NewDB(file)), nil
}

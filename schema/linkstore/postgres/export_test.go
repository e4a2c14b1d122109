//go:build engines

package postgres

import (
	"context"
	"io/fs"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// MigrateTo brings an empty database to a version of the schema. Version 0 leaves it empty.
func MigrateTo(ctx context.Context, dsn string, version int64) error {
	files := fstest.MapFS{}
	entries, err := fs.ReadDir(migrations(), ".")
	if err != nil || version == 0 {
		return err
	}
	for _, entry := range entries[:version] {
		text, err := fs.ReadFile(migrations(), entry.Name())
		if err != nil {
			return err
		}
		files[entry.Name()] = &fstest.MapFile{Data: text}
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrate(ctx, pool, files)
}

// Expand returns a text of linkstore as Postgres takes it.
func Expand(text string) string { return spellings.Expand(text) }

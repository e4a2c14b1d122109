//go:build engines

package postgres

import (
	"context"
	"io/fs"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Migrations returns the files of all migrations.
func Migrations() fs.FS { return migrations() }

// MigrateTo brings an empty database to a version of the schema. Version 0 leaves it empty.
func MigrateTo(ctx context.Context, dsn string, version int64) error {
	files := fstest.MapFS{}
	names, err := fs.Glob(migrations(), "*.sql")
	if err != nil || version == 0 {
		return err
	}
	for _, name := range names[:version] {
		text, err := fs.ReadFile(migrations(), name)
		if err != nil {
			return err
		}
		files[name] = &fstest.MapFile{Data: text}
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

// Parameters returns the parameters of a session.
func (c *Config) Parameters() (map[string]string, error) {
	pool, err := c.pool()
	if err != nil {
		return nil, err
	}
	return pool.ConnConfig.RuntimeParams, nil
}

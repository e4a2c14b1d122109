// Package postgres keeps links, accounts and what belongs to them in PostgreSQL 15 or later.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
)

//go:embed migrations
var migrations embed.FS

// Store keeps links, accounts and what belongs to them. All methods may be called concurrently.
type Store struct {
	pool      *pgxpool.Pool
	creations *groupcommit.Group[creation]
}

// Open connects to the database and brings its schema up to date. It returns CodeUnavailable if the server does not
// answer.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	config, err := cfg.pool()
	if err != nil {
		return nil, fmt.Errorf("read Postgres DSN: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, wrap(err, "open database")
	}
	files, err := fs.Sub(migrations, "migrations")
	if err == nil {
		err = migrate(ctx, pool, files)
	}
	if err != nil {
		pool.Close()
		return nil, wrap(err, "open database %q at %s", config.ConnConfig.Database, config.ConnConfig.Host)
	}
	s := &Store{pool: pool}
	s.creations = groupcommit.New(creationLimits, s.createTogether)
	return s, nil
}

// Close closes the connections once the calls under way are done.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// migrate applies the migrations that the database has not seen, under a lock: of many nodes that start one does it.
func migrate(ctx context.Context, pool *pgxpool.Pool, files fs.FS) (err error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60)) // each second, for a minute
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }() // leaves the pool open
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if current > known {
		return schema.Errorf(schema.CodeInternal,
			"its schema has version %d, made by a newer linkstream: this one knows %d", current, known)
	}
	if current == known {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from version %d to %d: %w", current, known, err)
	}
	return nil
}

// NULL stands for the zero time. Queries read it as zeroTime, statements write it as NULL by nullIfZero.
const zeroTime = `'0001-01-01T00:00:00Z'::timestamptz`

// nullIfZero returns t as an argument for a column that may be NULL.
func nullIfZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Package postgres stores links, accounts and everything that belongs to them in PostgreSQL 15 or later.
//
// Every method is one statement or one short transaction, so any number of processes may share a database. Links that are
// created at the same time are inserted by one statement; see CreateLink.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
	"linkstream/schema/span"
)

// Store is a schema.Database. Its methods may be called concurrently.
type Store struct {
	pool      *pgxpool.Pool
	creations *groupcommit.Group[creation]
}

var _ schema.Database = (*Store)(nil)

// Open connects to the database and brings its schema up to date. It returns CodeUnavailable if the server does not
// answer.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	config, err := cfg.pool()
	if err != nil {
		return nil, fmt.Errorf("read Postgres DSN: %w", err)
	}
	if span.Enabled(ctx) {
		config.ConnConfig.Tracer = queryTracer{}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, wrap(err, "open database")
	}
	if err := migrate(ctx, pool, migrations()); err != nil {
		pool.Close()
		return nil, wrap(err, "open database %q at %s", config.ConnConfig.Database, config.ConnConfig.Host)
	}
	s := &Store{pool: pool}
	s.creations = groupcommit.New(creationLimits, s.createBatch)
	return s, nil
}

// Close waits for calls in progress and closes the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"linkstream/schema/linkstore"
	"linkstream/schema/span"
)

// Store is a schema.Database. Its methods may be called concurrently.
type Store struct {
	*linkstore.Store
	pool *pgxpool.Pool
}

// New returns a store that connects to the database when it is used. The database may lack the schema until Migrate
// succeeds. Methods return CodeUnavailable as long as the server does not answer or the schema is missing.
func New(ctx context.Context, cfg Config) (*Store, error) {
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
	return &Store{Store: linkstore.New(NewDB(pool)), pool: pool}, nil
}

// Open is New followed by Migrate.
func Open(ctx context.Context, cfg Config) (*Store, error) { return open(ctx, cfg, (*Store).Migrate) }

// OpenCurrent opens a database without changing it, and refuses the schema of another release. It returns
// CodeUnavailable if the server does not answer.
func OpenCurrent(ctx context.Context, cfg Config) (*Store, error) {
	return open(ctx, cfg, func(s *Store, ctx context.Context) error { return s.opened(checkSchema(ctx, s.pool)) })
}

func open(ctx context.Context, cfg Config, check func(*Store, context.Context) error) (*Store, error) {
	s, err := New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := check(s, ctx); err != nil {
		s.pool.Close()
		return nil, err
	}
	return s, nil
}

// Migrate brings the database's schema up to date. Several processes may do so at once. It returns CodeUnavailable if
// the server does not answer, and an error for a schema that a newer program has migrated.
func (s *Store) Migrate(ctx context.Context) error {
	return s.opened(migrate(ctx, s.pool, migrations()))
}

// opened names the database in an error.
func (s *Store) opened(err error) error {
	server := s.pool.Config().ConnConfig
	return wrap(err, "open database %q at %s", server.Database, server.Host)
}

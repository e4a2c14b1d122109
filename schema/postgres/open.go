// Package postgres stores links, accounts and everything that belongs to them in PostgreSQL 15 or later.
//
// Every method is one statement or one short transaction, so any number of processes may share a database.
//
// # Links that are created together
//
// Calls of CreateLink that arrive together share a statement (package groupcommit), also those of several accounts. CreateLinks
// creates up to 1000 links of one account in one transaction. The account's row is locked meanwhile, which keeps ordinals dense
// and in the order of the call, so batches of an account take turns and the time under the lock counts. CreateLinks therefore
// finds the hashes in use without the lock and then locks domains and account and inserts all links by one statement, in order
// of domain and hash, so that batches of several processes do not deadlock. A batch that meets a hash taken meanwhile, makes
// deleted links anew or has an idempotency key takes several statements under the lock.
//
// A new link costs what its indexes cost. Table links has three: by ID, by domain and hash, and by account and ordinal. The second also
// finds a link by account and hash, because an account's links are on its domains or on the default one. There is no foreign key to accounts:
// it would cost as much as an index, and the statements that create links lock the account anyway.
//
// # Deleted links
//
// A deleted link keeps its row, which reserves the hash. Its ordinal is negative, so no list but the trash meets it.
// Made anew, the row gets a new ID. Table link_gaps has the number of deleted links per 1024 ordinals, by which schema.PageRange
// finds a page of any list.
//
// # Calls with an idempotency key
//
// A call is recorded with its links in the same transaction: after kill -9 both are there or neither. Which calls are under way in
// other processes is known by an advisory lock that nobody waits for.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	driver "linkstream/schema/linkstore/postgres"
	"linkstream/schema/span"
)

// Store is a schema.Database. Its methods may be called concurrently.
type Store struct {
	*linkstore.Store // the nouns that it has
	pool             *pgxpool.Pool
}

var _ schema.Database = (*Store)(nil)

// New returns a store that connects to the database when it is used. The database may lack the schema until Migrate succeeds.
// Methods return CodeUnavailable as long as the server does not answer or the schema is missing.
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
	s := &Store{Store: linkstore.New(driver.NewDB(pool)), pool: pool}
	return s, nil
}

// Open is New followed by Migrate.
func Open(ctx context.Context, cfg Config) (*Store, error) { return open(ctx, cfg, (*Store).Migrate) }

// OpenCurrent opens a database without changing it, and refuses the schema of another release. It returns CodeUnavailable if the server does
// not answer.
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

// Migrate brings the database's schema up to date. Several processes may do so at once. It returns CodeUnavailable if the server does
// not answer, and an error for a schema that a newer program has migrated.
func (s *Store) Migrate(ctx context.Context) error {
	return s.opened(migrate(ctx, s.pool, migrations()))
}

// opened names the database in an error.
func (s *Store) opened(err error) error {
	server := s.pool.Config().ConnConfig
	return wrap(err, "open database %q at %s", server.Database, server.Host)
}

// Readers implements schema.LinkStore.
func (s *Store) Readers() int { return int(s.pool.Config().MaxConns) }

// Close waits for calls in progress and closes the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

package postgres

import (
	"flag"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"linkstream/schema"
)

// Config names the database.
type Config struct {
	// DSN is an address as libpq takes it: postgres://user:password@host:port/database?sslmode=verify-full or
	// host=… user=…. pool_max_conns bounds the connections.
	DSN string
}

// DefaultConfig returns the configuration of a server on this machine.
func DefaultConfig() Config {
	return Config{DSN: "postgres://linkstream@127.0.0.1:5432/linkstream?sslmode=prefer"}
}

// RegisterFlags binds the settings to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	schema.SecretVar(fs, &c.DSN, "postgres.dsn",
		"`address` of the Postgres database as libpq takes it, with TLS (sslmode=verify-full&sslrootcert=…), pool_max_conns")
}

// Validate returns an error if the address cannot be parsed. It does not contain the password.
func (c *Config) Validate() error {
	if _, err := c.pool(); err != nil {
		return fmt.Errorf("-postgres.dsn: %w", err)
	}
	return nil
}

// connectTimeout is how long a server may take to greet a client, unless connect_timeout in the DSN says otherwise.
const connectTimeout = 5 * time.Second

// pool returns the settings of a connection pool. pgx leaves the password out of its errors.
func (c *Config) pool() (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, err
	}
	if pool.ConnConfig.ConnectTimeout == 0 { // pgx would wait forever for a server that accepts and does not answer
		pool.ConnConfig.ConnectTimeout = connectTimeout
	}
	return pool, nil
}

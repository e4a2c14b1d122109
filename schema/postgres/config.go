package postgres

import (
	"flag"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says where links and accounts are kept.
type Config struct {
	DSN string
}

// DefaultConfig is a server on this machine.
func DefaultConfig() Config {
	return Config{DSN: "postgres://linkstream@127.0.0.1:5432/linkstream?sslmode=prefer"}
}

// RegisterFlags binds the settings to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.DSN, "postgres.dsn", c.DSN, "`address` of the Postgres database, as libpq has it, TLS (sslmode=verify-full&sslrootcert=…) and pool_max_conns included")
}

// Validate returns what is wrong with the address.
func (c *Config) Validate() error {
	if _, err := pgxpool.ParseConfig(c.DSN); err != nil {
		return fmt.Errorf("-postgres.dsn: %w", err)
	}
	return nil
}

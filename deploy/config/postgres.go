package config

import (
	"flag"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Postgres says where links and accounts are kept.
type Postgres struct {
	DSN string
}

// DefaultPostgres is a server on this machine.
func DefaultPostgres() Postgres {
	return Postgres{DSN: "postgres://linkstream@127.0.0.1:5432/linkstream?sslmode=prefer"}
}

// RegisterFlags binds the settings to flags.
func (p *Postgres) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&p.DSN, "postgres.dsn", p.DSN, "`address` of the Postgres database, as libpq has it, TLS (sslmode=verify-full&sslrootcert=…) and pool_max_conns included")
}

// Validate returns what is wrong with the address.
func (p *Postgres) Validate() error {
	if _, err := pgxpool.ParseConfig(p.DSN); err != nil {
		return fmt.Errorf("-postgres.dsn: %w", err)
	}
	return nil
}

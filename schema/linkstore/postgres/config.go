package postgres

import (
	"flag"
	"fmt"
	"net"
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

// sessionLimits are parameters of each session, unless the DSN has them. A program that stands still in a transaction,
// such as on a paused virtual machine, holds its locks for 2 s. A call that waits for a lock gives its connection to
// others after 100 ms, and tries again: see linkstore.ErrAborted. The server looks for hosts that have vanished. One
// process executes a statement: parallel workers would take the processors that other calls need.
var sessionLimits = map[string]string{
	"idle_in_transaction_session_timeout": "2s", "lock_timeout": "100ms", "max_parallel_workers_per_gather": "0",
	"tcp_user_timeout": "15s", "tcp_keepalives_idle": "5", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "2",
}

// pool returns the settings of a connection pool. pgx leaves the password out of its errors.
func (c *Config) pool() (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, err
	}
	if pool.ConnConfig.ConnectTimeout == 0 { // pgx would wait forever for a server that accepts and does not answer
		pool.ConnConfig.ConnectTimeout = connectTimeout
	}
	for name, limit := range sessionLimits {
		if _, set := pool.ConnConfig.RuntimeParams[name]; !set {
			pool.ConnConfig.RuntimeParams[name] = limit
		}
	}
	alive := net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 2}
	pool.ConnConfig.DialFunc = (&net.Dialer{KeepAliveConfig: alive}).DialContext
	return pool, nil
}

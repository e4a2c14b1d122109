package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

// ClickStore is a schema.PositionStore and a schema.ReportStore. Its methods may be called concurrently.
type ClickStore struct {
	conn    driver.Conn
	options *ch.Options
	layout  layout
	columns sync.Pool     // of *columns
	within  time.Duration // insertWithin, or less in tests

	names *namebound.Bound // names of referrers to count

	// turns holds a value per call of a worker that is under way. There is a worker per partition, and the driver fails a
	// call that does not get a connection within the timeout of dialing.
	turns chan struct{}
	// histories holds a value while a call replaces imported clicks.
	histories chan struct{}
}

var (
	_ schema.PositionStore = (*ClickStore)(nil)
	_ schema.ReportStore   = (*ClickStore)(nil)
	_ schema.HistoryStore  = (*ClickStore)(nil)
)

// New returns a store that connects to the servers when it is used. The database must exist. It may lack the schema
// until Migrate succeeds: methods return CodeUnavailable as long as no server answers or the tables are missing.
func New(ctx context.Context, cfg Config) (*ClickStore, error) {
	options, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("read ClickHouse DSN: %w", err)
	}
	if err := cfg.loadCA(options); err != nil {
		return nil, fmt.Errorf("-clickhouse.tls-ca: %w", err)
	}
	conn, err := ch.Open(options)
	if err != nil {
		return nil, fmt.Errorf("read ClickHouse DSN: %w", err)
	}
	at := layout{Database: options.Auth.Database, Cluster: cfg.Cluster}
	return newStore(traced(ctx, batchConn{conn}), options, at), nil
}

// OpenClickStore is New followed by Migrate.
func OpenClickStore(ctx context.Context, cfg Config) (*ClickStore, error) {
	return open(ctx, cfg, (*ClickStore).Migrate)
}

// OpenCurrentClickStore opens a database without changing it, and refuses the schema of another release. It returns
// CodeUnavailable if no server answers.
func OpenCurrentClickStore(ctx context.Context, cfg Config) (*ClickStore, error) {
	return open(ctx, cfg, func(c *ClickStore, ctx context.Context) error {
		return c.whenUp(ctx, func() error { return checkSchema(ctx, c.options) })
	})
}

func open(ctx context.Context, cfg Config, check func(*ClickStore, context.Context) error) (*ClickStore, error) {
	c, err := New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := check(c, ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Migrate brings the schema up to date. Several processes may do so at once. It returns CodeUnavailable if no server
// answers.
func (c *ClickStore) Migrate(ctx context.Context) error {
	return c.whenUp(ctx, func() error { return migrate(ctx, c.options, c.layout) })
}

// whenUp calls f if a server answers whose tables have the layout of the store.
func (c *ClickStore) whenUp(ctx context.Context, f func() error) error {
	err := ping(ctx, c.conn, c.options.DialTimeout)
	if err == nil {
		err = c.checkLayout(ctx)
	}
	if err == nil {
		err = f()
	}
	return wrap(err, "open database %q at %v", c.options.Auth.Database, c.options.Addr)
}

func newStore(conn driver.Conn, options *ch.Options, l layout) *ClickStore {
	c := &ClickStore{conn: conn, options: options, layout: l, within: insertWithin,
		turns: make(chan struct{}, max(1, options.MaxOpenConns-spareConns)), histories: make(chan struct{}, 1)}
	c.names = namebound.New(c.loadNames)
	return c
}

// ping executes a query: over HTTP, only that shows that a server answers.
func ping(ctx context.Context, conn driver.Conn, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return conn.Ping(ctx)
}

// checkLayout refuses a database whose tables were created with the other kind of layout. A Distributed table that is
// taken for one on this server would answer inserts before they are stored; the other way around, each node would count
// by itself.
func (c *ClickStore) checkLayout(ctx context.Context) error {
	var engine string
	err := c.conn.QueryRow(ctx,
		`SELECT any(engine) FROM system.tables WHERE database = currentDatabase() AND name = 'clicks'`).Scan(&engine)
	switch distributed := engine == "Distributed"; {
	case err != nil || engine == "" || distributed == (c.layout.Cluster != ""):
		return err
	case distributed:
		return schema.Errorf(schema.CodeInternal, "the table clicks is Distributed: -clickhouse.cluster is not set")
	}
	return schema.Errorf(schema.CodeInternal, "the table clicks has engine %s: it was created without -clickhouse.cluster",
		engine)
}

// takeTurn waits until a connection is left for a call of a worker, in the order of calls. The caller calls done at the
// end.
func (c *ClickStore) takeTurn(ctx context.Context) (done func(), err error) {
	select {
	case c.turns <- struct{}{}:
		return func() { <-c.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Readers implements schema.ClickStore. A report takes reportConns connections.
func (c *ClickStore) Readers() int { return max(1, c.options.MaxOpenConns/2) }

// Close closes the connections. Later calls fail, and calls in progress may fail or succeed.
func (c *ClickStore) Close() error { return c.conn.Close() }

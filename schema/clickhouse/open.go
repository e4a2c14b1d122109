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

// ClickStore is a schema.ClickStore and a schema.ReportStore. Its methods may be called concurrently.
type ClickStore struct {
	conn    driver.Conn
	options *ch.Options
	layout  layout
	columns sync.Pool     // of *columns
	within  time.Duration // insertWithin, or less in tests

	referrers *namebound.Bound // names of referrers to count

	// turns holds a value per call of a worker that is under way. There is a worker per partition, and the driver fails a call that
	// does not get a connection within the timeout of dialing.
	turns chan struct{}
}

var (
	_ schema.ClickStore  = (*ClickStore)(nil)
	_ schema.ReportStore = (*ClickStore)(nil)
)

// OpenClickStore connects to the servers and brings the schema up to date. The database must exist. It returns
// CodeUnavailable if no server answers.
func OpenClickStore(ctx context.Context, cfg Config) (*ClickStore, error) {
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
	c := newStore(traced(ctx, conn), options, layout{Database: options.Auth.Database, Cluster: cfg.Cluster})
	if err = ping(ctx, conn, options.DialTimeout); err == nil {
		err = c.checkLayout(ctx)
	}
	if err == nil {
		err = migrate(ctx, options, c.layout)
	}
	if err != nil {
		err = errors.Join(err, conn.Close())
		return nil, wrap(err, "open database %q at %v", options.Auth.Database, options.Addr)
	}
	return c, nil
}

func newStore(conn driver.Conn, options *ch.Options, l layout) *ClickStore {
	c := &ClickStore{conn: conn, options: options, layout: l, within: insertWithin,
		turns: make(chan struct{}, max(1, options.MaxOpenConns-spareConns))}
	c.referrers = namebound.New(c.loadReferrers)
	return c
}

// ping executes a query: over HTTP, only that shows that a server answers.
func ping(ctx context.Context, conn driver.Conn, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return conn.Ping(ctx)
}

// checkLayout refuses a database whose tables were created with the other kind of layout. A Distributed table that is taken for one
// on this server would answer inserts before they are stored; the other way around, each node would count by itself.
func (c *ClickStore) checkLayout(ctx context.Context) error {
	var engine string
	err := c.conn.QueryRow(ctx, `SELECT any(engine) FROM system.tables WHERE database = currentDatabase() AND name = 'clicks'`).Scan(&engine)
	switch distributed := engine == "Distributed"; {
	case err != nil || engine == "" || distributed == (c.layout.Cluster != ""):
		return err
	case distributed:
		return schema.Errorf(schema.CodeInternal, "the table clicks is Distributed: -clickhouse.cluster is not set")
	}
	return schema.Errorf(schema.CodeInternal, "the table clicks has engine %s: it was created without -clickhouse.cluster", engine)
}

// takeTurn waits until a connection is left for a call of a worker, in the order of calls. The caller calls done at the end.
func (c *ClickStore) takeTurn(ctx context.Context) (done func(), err error) {
	select {
	case c.turns <- struct{}{}:
		return func() { <-c.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close closes the connections. Later calls fail, and calls in progress may fail or succeed.
func (c *ClickStore) Close() error { return c.conn.Close() }

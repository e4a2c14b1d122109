// Package sqlite stores counted clicks in SQLite files.
//
// Several processes may open one file. It is in WAL mode, so readers never wait, and every write is one immediate
// transaction that waits for the write lock.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"linkstream/schema"
	"linkstream/schema/namebound"
	"linkstream/schema/sqlitefile"
)

// ClickStore is a schema.ClickStore and a schema.ReportStore in a file. Its methods may be called concurrently; batches
// are inserted one after the other.
type ClickStore struct {
	db *database

	recent, ownedQuarters, visitors, marks, importedDays *upsert
	markOf, logVisits                                    *sql.Stmt // of the connection that writes

	idle       chan *aggregate // holds the only one, unless a batch is being inserted
	settling   settling        // belongs to who holds the aggregate, as the next one does
	visitorLog visitorLog
	now        func() time.Time
	names      *namebound.Bound
}

var (
	_ schema.ClickStore   = (*ClickStore)(nil)
	_ schema.ReportStore  = (*ClickStore)(nil)
	_ schema.HistoryStore = (*ClickStore)(nil)
)

// OpenClickStore opens the file at path, which it creates if needed in an existing folder, and brings its schema up to
// date.
func OpenClickStore(ctx context.Context, path string) (*ClickStore, error) {
	return openClickStore(ctx, path, sqlitefile.Open)
}

// OpenCurrentClickStore opens the existing file at path without changing it, and refuses the schema of another release.
func OpenCurrentClickStore(ctx context.Context, path string) (*ClickStore, error) {
	return openClickStore(ctx, path, sqlitefile.OpenCurrent)
}

func openClickStore(ctx context.Context, path string, open sqlitefile.Opener) (*ClickStore, error) {
	db, err := openDatabase(ctx, open, path)
	if err != nil {
		return nil, err
	}
	c := &ClickStore{db: db, idle: make(chan *aggregate, 1), now: time.Now}
	c.idle <- newAggregate()
	c.names = namebound.New(c.loadNames)
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(wrap(err, "prepare statements of %q", path), db.close())
	}
	return c, nil
}

func (c *ClickStore) prepare(ctx context.Context) (err error) {
	if c.markOf, err = c.db.write.PrepareContext(ctx, markOfLane); err != nil {
		return err
	}
	if c.logVisits, err = c.db.write.PrepareContext(ctx, logVisits); err != nil {
		return err
	}
	for _, into := range []struct {
		upsert         **upsert
		table, onMerge string
	}{
		{&c.recent, "recent (link_id, quarter, account_id, " + nameColumns + ", total)", "total = total + excluded.total"},
		{&c.ownedQuarters, "owned_quarters (account_id, quarter, people, bots)",
			"people = people + excluded.people, bots = bots + excluded.bots"},
		{&c.visitors, "visitors (owner, day, visitors)", mergeVisitors},
		{&c.marks, "marks (partition, incarnation, lane, seq, clicks)",
			"seq = max(seq, excluded.seq), clicks = clicks + excluded.clicks"},
		{&c.importedDays, "imported_days (account_id, day, link_id, source, clicks)", "clicks = excluded.clicks"},
	} {
		if *into.upsert, err = prepareUpsert(ctx, c.db.write, into.table, into.onMerge); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file. Later calls fail, and calls in progress may fail or succeed.
func (c *ClickStore) Close() error { return c.db.close() }

// Readers implements schema.ClickStore.
func (c *ClickStore) Readers() int { return sqlitefile.Readers }

// Package sqlite stores links and accounts (Store) and counted clicks (ClickStore) in SQLite files.
//
// Several processes may open one file. It is in WAL mode, so readers never wait, and every write is one immediate
// transaction that waits for the write lock.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
	"linkstream/schema/namebound"
)

// Store is a schema.Database in a file. Its methods may be called concurrently.
type Store struct {
	db *database
	// The statements that creating links takes, prepared once.
	createLink, countLink *sql.Stmt
	creations             *groupcommit.Group[schema.Link]
}

var _ schema.Database = (*Store)(nil)

// Open opens the file at path, which it creates if needed in an existing folder, and brings its schema up to date.
func Open(ctx context.Context, path string) (*Store, error) {
	// FULL syncs the write-ahead log at each commit: a link that was answered with 201 survives a power failure.
	db, err := openFile(ctx, path, "FULL", migrations("links"))
	if err != nil {
		return nil, err
	}
	s := &Store{db: db}
	s.creations = groupcommit.New(creationLimits, s.createBatch)
	for text, prepared := range map[string]**sql.Stmt{createLink: &s.createLink, countLink: &s.countLink} {
		if *prepared, err = db.write.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(wrap(err, "prepare queries of %q", path), db.close())
		}
	}
	return s, nil
}

// Close closes the file. Later calls fail, and calls in progress may fail or succeed.
func (s *Store) Close() error { return s.db.close() }

// ClickStore is a schema.ClickStore and a schema.ReportStore in a file. Its methods may be called concurrently; batches
// are inserted one after the other.
type ClickStore struct {
	db *database

	recent, owned, ownedDays, marks *upsert

	idle      chan *aggregate // holds the only one, unless a batch is being inserted
	settling  settling        // belongs to who holds the aggregate
	now       func() time.Time
	referrers *namebound.Bound
	names     atomic.Pointer[map[int64]string] // by number; for reading, see nameByID
}

var (
	_ schema.ClickStore  = (*ClickStore)(nil)
	_ schema.ReportStore = (*ClickStore)(nil)
)

// OpenClickStore opens the file at path, which it creates if needed in an existing folder, and brings its schema up to
// date.
func OpenClickStore(ctx context.Context, path string) (*ClickStore, error) {
	// NORMAL does not sync the write-ahead log at each commit. A power failure may undo the last batches, but as a whole
	// and in order: the positions go back with the counts, and the records after them are read from the topic again.
	db, err := openFile(ctx, path, "NORMAL", migrations("clicks"))
	if err != nil {
		return nil, err
	}
	c := &ClickStore{db: db, idle: make(chan *aggregate, 1), now: time.Now}
	c.idle <- newAggregate()
	c.referrers = namebound.New(c.loadReferrers)
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(wrap(err, "prepare statements of %q", path), db.close())
	}
	return c, nil
}

func (c *ClickStore) prepare(ctx context.Context) (err error) {
	for _, into := range []struct {
		upsert         **upsert
		table, onMerge string
	}{
		{&c.recent, "recent (link_id, quarter, account_id, client, referrer, total)", "total = total + excluded.total"},
		{&c.owned, "owned (account_id, day, link_id, people, bots)",
			"people = people + excluded.people, bots = bots + excluded.bots"},
		{&c.ownedDays, "owned_days (account_id, day, people, bots)",
			"people = people + excluded.people, bots = bots + excluded.bots"},
		{&c.marks, "marks (partition, incarnation, lane, seq, clicks, known)",
			`unknown = unknown + seq - known, clicks = clicks + excluded.clicks,
			seq = max(seq, excluded.seq), known = max(seq, excluded.seq)`},
	} {
		if *into.upsert, err = prepareUpsert(ctx, c.db.write, into.table, into.onMerge); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file. Later calls fail, and calls in progress may fail or succeed.
func (c *ClickStore) Close() error { return c.db.close() }

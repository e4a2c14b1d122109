package sqlite

import (
	"context"
	"database/sql"

	"linkstream/schema"
)

// takenEntries is how many entries TakeChanges takes. Each has one change.
const takenEntries = 1024

// IDs of entries become visible in their order, because there is one writer at a time. So a position in the outbox is an ID.
const (
	pendingChanges = `SELECT id, changes FROM outbox WHERE id > ? ORDER BY id LIMIT ?`
	lastPending    = `SELECT coalesce(max(id), 0) FROM outbox`
	hasPending     = `SELECT EXISTS (SELECT 1 FROM outbox)`
	takeChanges    = `DELETE FROM outbox WHERE id IN (SELECT id FROM outbox ORDER BY id LIMIT ?) RETURNING changes`
)

// PendingChanges implements schema.Outbox.
func (s *Store) PendingChanges(ctx context.Context, after int64) (schema.Pending, error) {
	pending, entries := schema.Pending{Next: after}, 0
	rows, err := s.db.query(ctx, pendingChanges, after, schema.MaxPending+1)
	err = forEachRow(rows, err, func() error {
		var entry string
		err := rows.Scan(&pending.Next, &entry)
		pending.Changes = schema.AppendChanges(pending.Changes, entry)
		entries++
		return err
	})
	if err == nil && entries > schema.MaxPending {
		pending = schema.Pending{Missed: true}
		err = s.db.queryRow(ctx, lastPending).Scan(&pending.Next)
	}
	return pending, wrap(err, "read pending changes")
}

// TakeChanges implements schema.Outbox. It looks before it takes the write lock.
func (s *Store) TakeChanges(ctx context.Context, publish func([]schema.Change) error) (taken bool, err error) {
	if err := s.db.queryRow(ctx, hasPending).Scan(&taken); err != nil || !taken {
		return false, wrap(err, "look for changes")
	}
	err = s.db.update(ctx, func(tx *sql.Tx) error {
		entries, err := stringsOf(tx.QueryContext(ctx, takeChanges, takenEntries))
		if taken = len(entries) > 0; err != nil || !taken {
			return err
		}
		var changes []schema.Change
		for _, entry := range entries {
			changes = schema.AppendChanges(changes, entry)
		}
		return publish(changes)
	})
	return taken && err == nil, wrap(err, "take changes")
}

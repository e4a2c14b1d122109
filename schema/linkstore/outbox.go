package linkstore

import (
	"context"

	"linkstream/schema"
)

const (
	// pendingChanges has the position in its first column. An entry is empty where the outbox has none after the position.
	pendingChanges = `{pending: $1 $2}`
	hasPending     = `SELECT EXISTS (SELECT 1 FROM outbox)`
	takeChanges    = `
	DELETE FROM outbox WHERE ({row: id changes}) {among}
		SELECT {row: id changes} FROM outbox ORDER BY {oldest entries}{for update skip locked}{end}
	RETURNING changes`
)

// PendingChanges implements schema.Outbox.
func (s *Store) PendingChanges(ctx context.Context, after int64) (schema.Pending, error) {
	pending, entry, entries := schema.Pending{Next: after}, "", 0
	rows, err := s.db.Query(ctx, statement(pendingChanges, []any{after, schema.MaxPending + 1}))
	if err == nil {
		err = each(rows, []any{&pending.Next, &entry}, func() error {
			pending.Changes = schema.AppendChanges(pending.Changes, entry)
			entries++
			return nil
		})
	}
	if pending.Missed = entries > schema.MaxPending; pending.Missed || err != nil {
		pending.Changes = nil
	}
	return pending, wrap(err, "read pending changes")
}

// TakeChanges implements schema.Outbox. The transaction stays open while publish runs: if the process ends, the entries
// stay. It looks for entries first, because SQLite has one lock for all changes.
func (s *Store) TakeChanges(ctx context.Context, publish func([]schema.Change) error) (taken bool, err error) {
	if err := get(ctx, s.db, value(&taken), hasPending); err != nil || !taken {
		return false, wrap(err, "look for changes")
	}
	err = s.db.Update(ctx, func(tx Conn) error {
		var changes []schema.Change
		var entry string
		var b Batch
		b.rows(func(rows Rows) error {
			return each(rows, value(&entry), func() error {
				changes = schema.AppendChanges(changes, entry)
				return nil
			})
		}, takeChanges)
		err := tx.Send(ctx, &b)
		if taken = len(changes) > 0; err != nil || !taken {
			return err
		}
		return publish(changes)
	})
	return taken && err == nil, wrap(err, "take changes")
}

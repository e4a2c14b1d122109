package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

// takenEntries is how many entries TakeChanges takes. One has the links that a statement has created, at most 1000.
const takenEntries = 32

// A position in the outbox is the oldest transaction that was under way when it was read: entries of older ones were seen, and
// later calls read those of this one and of all that are newer. Entries have the numbers of their transactions, because their IDs
// become visible in another order than they are given.
const (
	// pendingChanges starts over if the database was restored to a time before the position.
	pendingChanges = `
	WITH oldest AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xact)
	SELECT oldest.xact, ARRAY(
		SELECT changes FROM outbox WHERE outbox.xact >= CASE WHEN $1 <= oldest.xact THEN $1 ELSE 0 END LIMIT $2)
	FROM oldest`
	takeChanges = `
	DELETE FROM outbox WHERE (xact, id) IN (SELECT xact, id FROM outbox ORDER BY xact, id LIMIT $1 FOR UPDATE SKIP LOCKED)
	RETURNING changes`
)

// PendingChanges implements schema.Outbox.
func (s *Store) PendingChanges(ctx context.Context, after int64) (pending schema.Pending, err error) {
	var entries []string
	err = s.pool.QueryRow(ctx, pendingChanges, after, schema.MaxPending+1).Scan(&pending.Next, &entries)
	if err != nil {
		return schema.Pending{}, wrap(err, "read pending changes")
	}
	if pending.Missed = len(entries) > schema.MaxPending; pending.Missed {
		return pending, nil
	}
	for _, entry := range entries {
		pending.Changes = schema.AppendChanges(pending.Changes, entry)
	}
	return pending, nil
}

// TakeChanges implements schema.Outbox. The transaction stays open while publish is under way: if the process ends, the server rolls it
// back, and the entries wait further.
func (s *Store) TakeChanges(ctx context.Context, publish func([]schema.Change) error) (taken bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		entries, err := pgx.CollectRows(query(ctx, tx, takeChanges, takenEntries), pgx.RowTo[string])
		if err != nil || len(entries) == 0 {
			return err
		}
		taken = true
		var changes []schema.Change
		for _, entry := range entries {
			changes = schema.AppendChanges(changes, entry)
		}
		return publish(changes)
	})
	return taken && err == nil, wrap(err, "take changes")
}

package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	// pendingChanges has the position in its first two columns. An entry is empty where the outbox has none after the
	// position.
	pendingChanges = `{pending: $1 $2 $3}`
	canTake        = `NOT published AND (until IS NULL OR until <= {now})`
	isOld          = `published AND until <= {now}`
	oldest         = `(SELECT {row: id changes}, published, until FROM outbox ORDER BY {oldest entries}) AS first WHERE ` +
		isOld
	hasWaiting  = `SELECT EXISTS (SELECT 1 FROM outbox WHERE ` + canTake + `) OR EXISTS (SELECT 1 FROM ` + oldest + `)`
	takeChanges = `
	UPDATE outbox SET until = {now} + CAST($1 AS interval) WHERE ({row: id changes}) {among}
		SELECT {row: id changes} FROM outbox WHERE ` + canTake + ` ORDER BY {oldest entries}{for update skip locked}{end}
	RETURNING id, changes`
	returnChanges = `UPDATE outbox SET until = NULL WHERE id {in: $1} AND NOT published`
	keepChanges   = `UPDATE outbox SET published = true, until = {now} + CAST($2 AS interval)
		WHERE id {in: $1} AND NOT published`
	deleteChanges = `DELETE FROM outbox WHERE id {in: $1} AND NOT published`
	deleteOld     = `
	DELETE FROM outbox WHERE ({row: id changes}) {among} SELECT {row: id changes} FROM ` + oldest + `{end}`
)

// takenFor is how long changes are not given to another process while one publishes them.
const takenFor = 20 * time.Second

const giveBackTimeout = 2 * time.Second

// PendingChanges implements schema.Outbox.
func (s *Store) PendingChanges(ctx context.Context, after schema.OutboxPosition) (schema.Pending, error) {
	pending, entry, entries := schema.Pending{Next: after}, "", 0
	rows, err := s.db.Query(ctx, statement(pendingChanges, []any{after.Next, after.Seen, schema.MaxPending + 1}))
	if err == nil {
		err = each(rows, []any{&pending.Next.Next, &pending.Next.Seen, &entry}, func() error {
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

// TakeChanges implements schema.Outbox. No transaction is open while publish runs. It looks for entries first, because
// SQLite has one lock for all changes.
func (s *Store) TakeChanges(
	ctx context.Context, keep time.Duration, publish func([]schema.Change) error,
) (taken bool, err error) {
	if err := get(ctx, s.db, value(&taken), hasWaiting); err != nil || !taken {
		return false, wrap(err, "look for changes")
	}
	ids, changes, err := s.take(ctx)
	if err == nil && len(ids) > 0 {
		switch err = publish(changes); {
		case err != nil:
		case keep > 0:
			_, err = exec(ctx, s.db, keepChanges, ids, keep)
		default:
			_, err = exec(ctx, s.db, deleteChanges, ids)
		}
		if err != nil { // if this fails, too, they wait for takenFor
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
			defer cancel()
			_, _ = exec(ctx, s.engine, returnChanges, ids)
		}
	}
	return err == nil, wrap(err, "take changes")
}

// take takes the oldest entries that can be taken, and deletes old ones.
func (s *Store) take(ctx context.Context) (ids []int64, changes []schema.Change, err error) {
	var id int64
	var entry string
	var b Batch
	b.exec(deleteOld)
	b.rows(func(rows Rows) error {
		ids, changes = nil, nil
		return each(rows, []any{&id, &entry}, func() error {
			ids, changes = append(ids, id), schema.AppendChanges(changes, entry)
			return nil
		})
	}, takeChanges, takenFor)
	return ids, changes, s.db.Send(ctx, &b)
}

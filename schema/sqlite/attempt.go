package sqlite

import (
	"context"
	"database/sql"
	"time"
)

const (
	// deleteAttempts deletes up to 16 old rows: more than the one that a call may add, so that their number falls, and few
	// enough that other writes do not wait long.
	deleteAttempts = `
	DELETE FROM attempts WHERE (begins_at, key) IN
		(SELECT begins_at, key FROM attempts WHERE begins_at < ? ORDER BY begins_at LIMIT 16)`
	countAttempt = `
	INSERT INTO attempts AS a (begins_at, key, attempts) VALUES (?, ?, 1)
	ON CONFLICT (begins_at, key) DO UPDATE SET attempts = a.attempts + 1
	RETURNING attempts`
)

// CountAttempt implements schema.AttemptStore.
func (s *Store) CountAttempt(ctx context.Context, key [32]byte, window time.Time) (attempts int64, err error) {
	old := window.Add(-time.Hour)
	err = s.db.update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, deleteAttempts, unixMillis{&old}); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, countAttempt, unixMillis{&window}, key[:]).Scan(&attempts)
	})
	return attempts, wrap(err, "count attempt")
}

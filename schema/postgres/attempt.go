package postgres

import (
	"context"
	"time"
)

// countAttempt also deletes up to 16 old rows. It adds at most one, so their number falls. It skips rows that another call
// is deleting, so that no call waits for another's clean-up.
const countAttempt = `
	WITH old AS (DELETE FROM attempts WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM attempts WHERE begins_at < $3 ORDER BY begins_at LIMIT 16 FOR UPDATE SKIP LOCKED)))
	INSERT INTO attempts AS a (begins_at, key, attempts) VALUES ($1, $2, 1)
	ON CONFLICT (begins_at, key) DO UPDATE SET attempts = a.attempts + 1
	RETURNING attempts`

// CountAttempt implements schema.AttemptStore.
func (s *Store) CountAttempt(ctx context.Context, key [32]byte, window time.Time) (attempts int64, err error) {
	err = s.pool.QueryRow(ctx, countAttempt, window, key[:], window.Add(-time.Hour)).Scan(&attempts)
	return attempts, wrap(err, "count attempt")
}

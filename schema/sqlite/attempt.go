package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	// deleteAttempts deletes a few more old rows than a call may add, so that their number falls, and few enough that other
	// writes do not wait long.
	deleteAttempts = `
	DELETE FROM attempts WHERE (begins_at, key) IN
		(SELECT begins_at, key FROM attempts WHERE begins_at < ? ORDER BY begins_at LIMIT ?)`
	countAttempts = `
	INSERT INTO attempts AS a (begins_at, key, attempts) VALUES (?, ?, ?)
	ON CONFLICT (begins_at, key) DO UPDATE SET attempts = a.attempts + excluded.attempts
	RETURNING attempts`
	// attemptsDeleted is how many old rows a call deletes beyond the number that it may add.
	attemptsDeleted = 16
)

// CountAttempts implements schema.AttemptStore.
func (s *Store) CountAttempts(ctx context.Context, attempts []schema.Attempts) ([]int64, error) {
	if len(attempts) == 0 {
		return nil, nil
	}
	latest := slices.MaxFunc(attempts, func(a, b schema.Attempts) int { return a.Window.Compare(b.Window) }).Window
	old := latest.Add(-time.Hour)
	totals := make([]int64, len(attempts))
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, deleteAttempts, unixMillis{&old}, len(attempts)+attemptsDeleted); err != nil {
			return err
		}
		count, err := tx.PrepareContext(ctx, countAttempts)
		if err != nil {
			return err
		}
		defer count.Close()
		for i, a := range attempts {
			if err := count.QueryRowContext(ctx, unixMillis{&a.Window}, a.Key[:], a.N).Scan(&totals[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return totals, wrap(err, "count attempts")
}

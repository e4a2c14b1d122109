package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

// countAttempts also deletes up to $5 old rows. It skips rows that another call is deleting, so that no call waits for
// another's clean-up. It locks the rows that it counts in order of window and key, so concurrent calls do not deadlock.
const countAttempts = `
	WITH old AS (DELETE FROM attempts WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM attempts WHERE begins_at < $4 ORDER BY begins_at LIMIT $5 FOR UPDATE SKIP LOCKED)))
	INSERT INTO attempts AS a (begins_at, key, attempts)
	SELECT * FROM unnest($1::timestamptz[], $2::bytea[], $3::bigint[]) AS new (begins_at, key, attempts) ORDER BY 1, 2
	ON CONFLICT (begins_at, key) DO UPDATE SET attempts = a.attempts + excluded.attempts
	RETURNING begins_at, key, attempts`

// attemptsDeleted is how many old rows a call deletes beyond the number that it may add.
const attemptsDeleted = 16

// CountAttempts implements schema.AttemptStore.
func (s *Store) CountAttempts(ctx context.Context, attempts []schema.Attempts) ([]int64, error) {
	type row struct {
		begins int64 // in microseconds, as Postgres keeps it
		key    [32]byte
	}
	if len(attempts) == 0 {
		return nil, nil
	}
	latest := slices.MaxFunc(attempts, func(a, b schema.Attempts) int { return a.Window.Compare(b.Window) }).Window
	places := make(map[row]int, len(attempts))
	windows, keys, counts := make([]time.Time, len(attempts)), make([][]byte, len(attempts)), make([]int64, len(attempts))
	for i, a := range attempts {
		windows[i], keys[i], counts[i] = a.Window, bytes.Clone(a.Key[:]), a.N
		places[row{a.Window.UnixMicro(), a.Key}] = i
	}
	totals := make([]int64, len(attempts))
	rows, err := s.pool.Query(ctx, countAttempts, windows, keys, counts, latest.Add(-time.Hour), len(attempts)+attemptsDeleted)
	if err != nil {
		return nil, wrap(err, "count attempts")
	}
	var window time.Time
	var key []byte
	var total int64
	_, err = pgx.ForEachRow(rows, []any{&window, &key, &total}, func() error {
		totals[places[row{window.UnixMicro(), [32]byte(key)}]] = total
		return nil
	})
	return totals, wrap(err, "count attempts")
}

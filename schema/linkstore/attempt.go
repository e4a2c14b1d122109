package linkstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	// deleteAttempts skips rows that another call is deleting, so that no call waits for another's clean-up.
	deleteAttempts = `
	DELETE FROM attempts WHERE ({row: begins_at key}) {among}
		SELECT {row: begins_at key} FROM attempts WHERE begins_at < $1 ORDER BY begins_at
			LIMIT $2{for update skip locked}{end}`
	countAttempt = `
	INSERT INTO attempts AS a (begins_at, key, attempts) VALUES ($1, $2, $3)
	ON CONFLICT (begins_at, key) DO UPDATE SET attempts = a.attempts + excluded.attempts
	RETURNING attempts`
	// attemptsDeleted is how many old rows a call deletes beyond the number that it may add: so their number falls, and
	// other calls do not wait long.
	attemptsDeleted = 16
)

// CountAttempts implements schema.AttemptStore. It locks the rows that it counts in the order of windows and keys, so
// concurrent calls do not deadlock.
func (s *Store) CountAttempts(ctx context.Context, attempts []schema.Attempts) ([]int64, error) {
	if len(attempts) == 0 {
		return nil, nil
	}
	order := make([]int, len(attempts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &attempts[i], &attempts[j]
		return cmp.Or(a.Window.Compare(b.Window), bytes.Compare(a.Key[:], b.Key[:]))
	})
	latest, totals := attempts[order[len(order)-1]].Window, make([]int64, len(attempts))
	var b Batch
	b.exec(deleteAttempts, latest.Add(-time.Hour), len(attempts)+attemptsDeleted)
	for _, i := range order {
		b.get(value(&totals[i]), countAttempt, attempts[i].Window, attempts[i].Key[:], attempts[i].N)
	}
	return totals, wrap(s.db.Send(ctx, &b), "count attempts")
}

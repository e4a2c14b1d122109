package postgres

import "time"

// The zero time is NULL in columns that allow it: statements write it by nullIfZero, and queries read NULL as zeroTime.
const zeroTime = `'0001-01-01T00:00:00Z'::timestamptz`

func nullIfZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

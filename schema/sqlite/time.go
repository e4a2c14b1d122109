package sqlite

import "time"

// dateOf returns the date of a day number.
func dateOf(day int64) string {
	return time.Unix(0, 0).UTC().AddDate(0, 0, int(day)).Format(time.DateOnly)
}

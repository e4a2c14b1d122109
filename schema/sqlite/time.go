package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// unixMillis passes a time to and from a column of Unix milliseconds. The zero time is NULL.
type unixMillis struct{ *time.Time }

func (m unixMillis) Value() (driver.Value, error) {
	if m.IsZero() {
		return nil, nil
	}
	return m.UnixMilli(), nil
}

func (m unixMillis) Scan(column any) error {
	switch ms := column.(type) {
	case nil:
		*m.Time = time.Time{}
	case int64:
		*m.Time = time.UnixMilli(ms).UTC()
	default:
		return fmt.Errorf("scan %T as Unix milliseconds", column)
	}
	return nil
}

// dateOf returns the date of a day number.
func dateOf(day int64) string {
	return time.Unix(0, 0).UTC().AddDate(0, 0, int(day)).Format(time.DateOnly)
}

package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// millis passes a time to and from a column of Unix milliseconds; the zero time is NULL.
type millis struct{ *time.Time }

func (m millis) Value() (driver.Value, error) {
	if m.IsZero() {
		return nil, nil
	}
	return m.UnixMilli(), nil
}

func (m millis) Scan(column any) error {
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

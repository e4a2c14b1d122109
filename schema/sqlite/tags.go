package sqlite

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// tags passes tags to and from a column of text, where spaces separate them. A nil pointer is NULL.
type tags struct{ list *[]string }

func (t tags) Value() (driver.Value, error) {
	if t.list == nil {
		return nil, nil
	}
	return strings.Join(*t.list, " "), nil
}

func (t tags) Scan(column any) error {
	text, ok := column.(string)
	if !ok {
		return fmt.Errorf("scan %T as tags", column)
	}
	if *t.list = nil; text != "" {
		*t.list = strings.Split(text, " ")
	}
	return nil
}

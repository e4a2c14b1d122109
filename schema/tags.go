package schema

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// TagCount counts the links of an account with a tag.
type TagCount struct {
	Tag   string
	Links int64
}

// TaggedLink has the fields of a link that counts of tags depend on.
type TaggedLink struct {
	ID, Ordinal int64
	Tags        []string
}

// TagsColumn passes tags to and from a column of text of a database, where spaces separate them. A nil pointer is NULL.
type TagsColumn struct{ List *[]string }

// Value implements driver.Valuer.
func (t TagsColumn) Value() (driver.Value, error) {
	if t.List == nil {
		return nil, nil
	}
	return strings.Join(*t.List, " "), nil
}

// Scan implements sql.Scanner.
func (t TagsColumn) Scan(column any) error {
	text, ok := column.(string)
	if !ok {
		return fmt.Errorf("scan %T as tags", column)
	}
	if *t.List = nil; text != "" {
		*t.List = strings.Split(text, " ")
	}
	return nil
}

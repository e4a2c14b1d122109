package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"linkstream/schema/linkstore"
)

// spellings are those of SQLite. One transaction writes at a time, so no row needs a lock.
var spellings = linkstore.Dialect{
	"now": "$now", // an argument that bind adds: tests have clocks of their own

	"for update": "", "for update of l": "", "for update skip locked": "",
	"for share": "", "for share of h": "", "for key share": "",

	"lock accounts": "SELECT 1", "try lock": "%1 IS NOT NULL",

	"in":    "IN (SELECT value FROM json_each(%1))",
	"keys":  "(SELECT key + 1 AS place, value AS domain_id, %2 ->> key AS hash FROM json_each(%1)) AS k",
	"words": `json_each('["' || replace(%1, ' ', '","') || '"]') AS word`,
	"row":   "%1, %2", "among": "IN (", "end": ")",

	"json": "nullif(%1, '')",

	// IDs of entries become visible in their order, because there is one writer at a time. So a position is an ID.
	"pending": `
	SELECT (SELECT max(id) FROM outbox), '', changes FROM outbox WHERE id > %1 AND %2 = '' ORDER BY id LIMIT %3`,
	"oldest entries": "id LIMIT 1024", // an entry has one change, or the names of a link

	"binary": "", "folded": "%1", "find": "instr", "greatest": "max", "least": "min",
	"bytes": "unhex(%1)", "materialized": "NOT MATERIALIZED",

	// Types of columns, in migrations.
	"integer": "INTEGER", "boolean": "INTEGER CHECK (%1 IN (0, 1))", "time": "INTEGER", "strict": " STRICT",
}

// text is a statement as SQLite takes it.
type text struct {
	sql   string
	clock bool // the last argument is the time
}

var (
	placeholder = regexp.MustCompile(`\$([0-9]+)`)
	clock       = regexp.MustCompile(`\$now\b`)
)

// translate returns a text of linkstore as SQLite takes it.
func translate(of string) text {
	expanded, last := spellings.Expand(of), 0
	for _, found := range placeholder.FindAllStringSubmatch(expanded, -1) {
		n, _ := strconv.Atoi(found[1]) // digits
		last = max(last, n)
	}
	numbered := placeholder.ReplaceAllString(expanded, "?$1")
	timed := clock.ReplaceAllString(numbered, "?"+strconv.Itoa(last+1))
	return text{sql: timed, clock: timed != numbered}
}

// bind returns arguments as database/sql takes them. Times and durations become milliseconds, and lists JSON.
func (t text) bind(args []any) ([]any, error) {
	bound := make([]any, 0, len(args)+1)
	for _, arg := range args {
		switch value := arg.(type) {
		case time.Time:
			arg = unixMillis{&value}
		case *time.Time:
			if arg = nil; value != nil {
				arg = unixMillis{value}
			}
		case time.Duration:
			arg = value.Milliseconds()
		case []int64, []string:
			list, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			arg = string(list)
		}
		bound = append(bound, arg)
	}
	if t.clock {
		bound = append(bound, time.Now().UnixMilli())
	}
	return bound, nil
}

// unixMillis passes a time to and from a column of Unix milliseconds. The zero time is NULL.
type unixMillis struct{ *time.Time }

// Value implements driver.Valuer.
func (m unixMillis) Value() (driver.Value, error) {
	if m.IsZero() {
		return nil, nil
	}
	return m.UnixMilli(), nil
}

// Scan implements sql.Scanner.
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

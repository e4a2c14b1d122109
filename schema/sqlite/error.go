package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"linkstream/schema"
)

// wrap adds a code and the operation that failed to err; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return schema.Errorf(codeOf(err), format+": %w", append(args, err)...)
}

func codeOf(err error) schema.Code {
	var failed *sqlite.Error
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return schema.CodeNotFound
	case errors.Is(err, context.DeadlineExceeded):
		return schema.CodeUnavailable
	case !errors.As(err, &failed):
		return schema.ErrorCode(err)
	}
	switch failed.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return schema.CodeConflict
	}
	switch failed.Code() & 0xff { // without the detail in an extended code's higher bits
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return schema.CodeUnavailable
	}
	return schema.CodeInternal
}

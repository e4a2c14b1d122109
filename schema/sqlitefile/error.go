package sqlitefile

import (
	"context"
	"database/sql"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"linkstream/schema"
)

// Coded gives an error of SQLite or database/sql its code; nil stays nil.
func Coded(err error) error {
	if err == nil {
		return nil
	}
	if failure := new(*sqlite.Error); errors.As(err, failure) && (*failure).Code() == sqlite3.SQLITE_CONSTRAINT_TRIGGER {
		err = schema.ErrMoved // only triggers of frozen stores refuse anything
	}
	return schema.Errorf(codeOf(err), "%w", err)
}

// Wrap is Coded, and adds the operation that failed.
func Wrap(err error, format string, args ...any) error {
	if err = Coded(err); err == nil {
		return nil
	}
	return schema.Errorf(schema.ErrorCode(err), format+": %w", append(args, err)...)
}

// codeOf returns the code of an error of SQLite, of database/sql or of a method of a store.
func codeOf(err error) schema.Code {
	var failure *sqlite.Error
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return schema.CodeNotFound
	case errors.Is(err, context.DeadlineExceeded):
		return schema.CodeUnavailable
	case !errors.As(err, &failure):
		return schema.ErrorCode(err)
	}
	switch failure.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return schema.CodeConflict
	}
	switch failure.Code() & 0xff { // the primary result code, without the extension in the higher bits
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return schema.CodeUnavailable
	}
	return schema.CodeInternal
}

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"linkstream/schema"
)

// wrap adds a code and the operation that failed to err; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return schema.Errorf(codeOf(err), format+": %w", append(args, err)...)
}

// codeOf returns the code of an error of pgx, of the server or of a method of Store.
func codeOf(err error) schema.Code {
	var own *schema.Error
	var answer *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return schema.CodeNotFound
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, context.Canceled): // the caller gave up
		return schema.CodeInternal
	case !errors.As(err, &answer): // the connection failed, or the time is over
		return schema.CodeUnavailable
	}
	switch answer.Code {
	case "23505": // unique_violation
		return schema.CodeConflict
	case "22021": // character_not_in_repertoire: no row can have the text, such as bytes that are not UTF-8
		return schema.CodeNotFound
	case "42P01", "42703": // undefined_table, undefined_column: before Migrate
		return schema.CodeUnavailable
	}
	switch answer.Code[:2] { // the class of the SQLSTATE; see PostgreSQL, appendix A
	case "08", "53", "57", "58": // connection exception, insufficient resources, operator intervention, system error
		return schema.CodeUnavailable
	}
	return schema.CodeInternal
}

// isDeadlock reports whether the server has ended a transaction because others wait for it.
func isDeadlock(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == "40P01" // deadlock_detected
}

// oneRow returns pgx.ErrNoRows for a statement that changed no row.
func oneRow(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return pgx.ErrNoRows
	}
	return err
}

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

func codeOf(err error) schema.Code {
	var own *schema.Error
	var answered *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return schema.CodeNotFound
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, context.Canceled):
		return schema.CodeInternal // the caller went away
	case !errors.As(err, &answered):
		return schema.CodeUnavailable // no answer: the connection, or the time, ran out
	}
	switch answered.Code {
	case "23505": // unique_violation
		return schema.CodeConflict
	case "22021": // character_not_in_repertoire: asked for a text that no row can hold, such as bytes that are not UTF-8
		return schema.CodeNotFound
	}
	switch answered.Code[:2] { // classes of SQLSTATE, see PostgreSQL's appendix A
	case "08", "53", "57", "58": // connection, resources, operator intervention, system error
		return schema.CodeUnavailable
	}
	return schema.CodeInternal
}

// oneRow reports a statement that changed no row as pgx.ErrNoRows.
func oneRow(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return pgx.ErrNoRows
	}
	return err
}

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"linkstream/schema"
	"linkstream/schema/linkstore"
)

// spellings are those of Postgres. The server's clock counts, and clock_timestamp goes on while a transaction waits for
// a lock.
var spellings = linkstore.Dialect{
	"now": "clock_timestamp()",

	"for update": " FOR NO KEY UPDATE", "for update of l": " FOR NO KEY UPDATE OF l",
	"for update skip locked": " FOR NO KEY UPDATE SKIP LOCKED",
	"for share":              " FOR SHARE", "for share of h": " FOR SHARE OF h", "for key share": " FOR KEY SHARE",

	"lock accounts": "LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE", "try lock": "pg_try_advisory_xact_lock(%1)",

	"in":    "= ANY (%1)",
	"keys":  "unnest(%1::bigint[], %2::text[]) WITH ORDINALITY AS k (domain_id, hash, place)",
	"words": "unnest(string_to_array(%1, ' ')) AS word (value)",
	// An array makes the planner look up its elements, however many it expects.
	"row": "ctid", "among": "= ANY (ARRAY(", "end": "))",

	"json": "nullif(%1, '')::jsonb",

	// A position in the outbox is the snapshot of the transaction that read it, and the oldest transaction that was in
	// progress then. Entries have the numbers of their transactions, because IDs become visible in another order than they
	// are given. A position after the newest transaction is from before a restore, and all entries are read.
	"pending": `
	WITH present AS MATERIALIZED (
		SELECT pg_current_snapshot()::text AS seen, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xact)
	SELECT present.xact, seen, coalesce(entry.changes, '') FROM present LEFT JOIN LATERAL (
		SELECT changes FROM outbox WHERE outbox.xact >= CASE WHEN %1 <= present.xact THEN %1 ELSE 0 END
			AND NOT coalesce(%1 <= present.xact AND
				pg_visible_in_snapshot(outbox.xact::text::xid8, CAST(nullif(%2, '') AS pg_snapshot)), false)
			LIMIT %3) AS entry ON true`,
	"oldest entries": "xact, id LIMIT 32", // an entry has the links that a statement has created, at most 1000

	"binary": ` COLLATE "C"`, "folded": `lower(%1 COLLATE "C")`, "greatest": "greatest", "least": "least",
	"find":  `pg_catalog."position"`, // which is what the condition of the index webhooks_of_clicks calls
	"bytes": "decode(%1, 'hex')", "materialized": "MATERIALIZED",

	// Types of columns, in migrations.
	"integer": "bigint", "boolean": "boolean", "time": "timestamptz", "strict": "",
}

// bind replaces zero times by NULL.
func bind(args []any) []any {
	for i, arg := range args {
		switch value := arg.(type) {
		case time.Time:
			if value.IsZero() {
				args[i] = nil
			}
		case *time.Time:
			if value != nil && value.IsZero() {
				args[i] = nil
			}
		}
	}
	return args
}

// utc scans a time. NULL is the zero time.
type utc struct{ *time.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (u utc) ScanTimestamptz(v pgtype.Timestamptz) error {
	*u.Time = v.Time.UTC()
	return nil
}

// lockNotAvailable is the SQLSTATE of a statement that has waited longer than lock_timeout.
const lockNotAvailable = "55P03"

// coded gives an error of pgx or of the server its code; nil stays nil.
func coded(err error) error {
	if err == nil {
		return nil
	}
	if answer := answerOf(err); answer != nil {
		switch answer.Code {
		case lockNotAvailable, "40P01", "25P03": // deadlock_detected, idle_in_transaction_session_timeout
			return schema.Errorf(schema.CodeUnavailable, "%w", errors.Join(err, linkstore.ErrAborted))
		case "22012": // division_by_zero: see required
			return linkstore.ErrNoRow
		}
	}
	return schema.Errorf(codeOf(err), "%w", err)
}

// wrap is coded, and adds the operation that failed.
func wrap(err error, format string, args ...any) error {
	if err = coded(err); err == nil {
		return nil
	}
	return schema.Errorf(schema.ErrorCode(err), format+": %w", append(args, err)...)
}

// answerOf returns the server's error in err, or nil.
func answerOf(err error) *pgconn.PgError {
	var answer *pgconn.PgError
	errors.As(err, &answer)
	return answer
}

func codeOf(err error) schema.Code {
	var own *schema.Error
	answer := answerOf(err)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return schema.CodeNotFound
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, context.Canceled): // the caller gave up
		return schema.CodeInternal
	case answer == nil: // the connection failed, or the time is over
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

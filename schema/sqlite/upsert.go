package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// upsertRows is how many rows one statement inserts: with more, the cost of a row hardly falls.
const upsertRows = 32

// upsert inserts rows, or merges them with those that have the same key, many at a time.
type upsert struct {
	columns   int
	one, many *sql.Stmt
}

// prepareUpsert takes a table with its columns, as in "totals (link_id, total)", and how to merge.
func prepareUpsert(ctx context.Context, db *sql.DB, table, merge string) (*upsert, error) {
	u := &upsert{columns: 1 + strings.Count(table, ",")}
	row := "(?" + strings.Repeat(", ?", u.columns-1) + ")"
	prepare := func(rows int) (*sql.Stmt, error) {
		return db.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s VALUES %s ON CONFLICT DO UPDATE SET %s",
			table, row+strings.Repeat(", "+row, rows-1), merge))
	}
	var err error
	if u.one, err = prepare(1); err == nil {
		u.many, err = prepare(upsertRows)
	}
	return u, err
}

// upserting is an upsert in a transaction, with the values of the rows that wait for a full statement.
type upserting struct {
	columns   int
	one, many *sql.Stmt
	values    []any
}

func (u *upsert) begin(ctx context.Context, tx *sql.Tx) *upserting {
	return &upserting{
		columns: u.columns, one: tx.StmtContext(ctx, u.one), many: tx.StmtContext(ctx, u.many),
		values: make([]any, 0, u.columns*upsertRows),
	}
}

// add takes a row, one value for each column.
func (u *upserting) add(ctx context.Context, row ...any) error {
	u.values = append(u.values, row...)
	if len(u.values) < u.columns*upsertRows {
		return nil
	}
	_, err := u.many.ExecContext(ctx, u.values...)
	u.values = u.values[:0]
	return err
}

// end inserts the rows that still wait.
func (u *upserting) end(ctx context.Context) error {
	for rest := u.values; len(rest) > 0; rest = rest[u.columns:] {
		if _, err := u.one.ExecContext(ctx, rest[:u.columns]...); err != nil {
			return err
		}
	}
	return nil
}

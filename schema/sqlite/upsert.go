package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// upsertRows is how many rows one statement inserts. With more rows, the cost per row hardly falls.
const upsertRows = 32

// upsert inserts rows into a table, and merges each with the existing row that has its key.
type upsert struct {
	columns   int
	one, many *sql.Stmt // insert 1 and upsertRows rows
}

// prepareUpsert prepares the upsert of a table, which is named with its columns as in "totals (link_id, total)".
// onMerge sets the columns of an existing row.
func prepareUpsert(ctx context.Context, db *sql.DB, table, onMerge string) (*upsert, error) {
	u := &upsert{columns: 1 + strings.Count(table, ",")}
	row := "(?" + strings.Repeat(", ?", u.columns-1) + ")"
	prepare := func(rows int) (*sql.Stmt, error) {
		return db.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s VALUES %s ON CONFLICT DO UPDATE SET %s",
			table, row+strings.Repeat(", "+row, rows-1), onMerge))
	}
	var err error
	if u.one, err = prepare(1); err == nil {
		u.many, err = prepare(upsertRows)
	}
	return u, err
}

// upsertTx is an upsert in a transaction. It buffers rows until they fill a statement.
type upsertTx struct {
	columns   int
	one, many *sql.Stmt
	values    []any // of the buffered rows
}

func (u *upsert) begin(ctx context.Context, tx *sql.Tx) *upsertTx {
	return &upsertTx{
		columns: u.columns, one: tx.StmtContext(ctx, u.one), many: tx.StmtContext(ctx, u.many),
		values: make([]any, 0, u.columns*upsertRows),
	}
}

// add adds a row, which has one value per column.
func (u *upsertTx) add(ctx context.Context, row ...any) error {
	u.values = append(u.values, row...)
	if len(u.values) < u.columns*upsertRows {
		return nil
	}
	_, err := u.many.ExecContext(ctx, u.values...)
	u.values = u.values[:0]
	return err
}

// flush inserts the buffered rows.
func (u *upsertTx) flush(ctx context.Context) error {
	for rest := u.values; len(rest) > 0; rest = rest[u.columns:] {
		if _, err := u.one.ExecContext(ctx, rest[:u.columns]...); err != nil {
			return err
		}
	}
	return nil
}

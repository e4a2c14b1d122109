package sqlitefile

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"linkstream/schema"
)

// A store that moves to another engine is frozen: triggers refuse every change, of any process and any release, from
// the commit that creates them on. So whatever was answered before is in the copy, and nothing is answered that is not.

const (
	createMoved = `CREATE TABLE IF NOT EXISTS moved (id BLOB NOT NULL) STRICT`
	selectMoved = `SELECT id FROM moved`
	insertMoved = `INSERT INTO moved (id) VALUES (?)`
	refusal     = `CREATE TRIGGER IF NOT EXISTS moved_%[1]s_%[2]s BEFORE %[3]s ON %[1]s
		BEGIN SELECT RAISE(ABORT, 'the data has moved to other engines'); END`
	// The services at the new place share values of their own from their start on, and those here go on with theirs.
	tableNames = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
		AND name NOT IN ('moved', 'outbox', 'shared_values', 'goose_db_version') ORDER BY name`
	columnNames = `SELECT name FROM pragma_table_info(?) ORDER BY cid`
)

// Rows that the api writes when it only reads: limits, and the times of last uses. Nobody misses the changes of a few
// seconds.
var (
	neverFrozen   = []string{"attempts", "rate_windows"}
	freelyUpdated = map[string][]string{"tokens": {"used_at"}, "sessions": {"seen_at", "expires_at"}}
)

// Freeze makes the store in the file at path refuse changes with schema.ErrMoved, for good. It returns the ID of the
// move that the store belongs to, which is the given one unless the store was frozen before. A zero ID is replaced by a
// random one.
func Freeze(ctx context.Context, path string, move schema.MoveID) (schema.MoveID, error) {
	err := Existing(path, func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil { // there is one connection
			return err
		}
		if err := freeze(ctx, db, &move); err != nil {
			_, rollback := db.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			return errors.Join(err, rollback)
		}
		_, err := db.ExecContext(ctx, "COMMIT")
		return err
	})
	return move, Wrap(err, "freeze %q", path)
}

func freeze(ctx context.Context, db *sql.DB, move *schema.MoveID) error {
	if _, err := db.ExecContext(ctx, createMoved); err != nil {
		return err
	}
	var id []byte
	err := db.QueryRowContext(ctx, selectMoved).Scan(&id)
	switch {
	case err == nil:
		copy(move[:], id)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	default:
		if *move == (schema.MoveID{}) {
			_, _ = rand.Read(move[:]) // never fails
		}
		if _, err := db.ExecContext(ctx, insertMoved, move[:]); err != nil {
			return err
		}
	}
	tables, err := Tables(ctx, db)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if slices.Contains(neverFrozen, table) {
			continue
		}
		columns, err := Columns(ctx, db, table)
		if err != nil {
			return err
		}
		columns = slices.DeleteFunc(columns, func(name string) bool { return slices.Contains(freelyUpdated[table], name) })
		for name, event := range map[string]string{
			"insert": "INSERT", "delete": "DELETE", "update": "UPDATE OF " + strings.Join(columns, ", "),
		} {
			if _, err := db.ExecContext(ctx, fmt.Sprintf(refusal, table, name, event)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Querier is a database or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Tables returns the names of the tables whose rows move to other engines.
func Tables(ctx context.Context, q Querier) ([]string, error) { return Strings(ctx, q, tableNames) }

// Columns returns the names of a table's columns.
func Columns(ctx context.Context, q Querier, table string) ([]string, error) {
	return Strings(ctx, q, columnNames, table)
}

// Strings returns the one column of a query.
func Strings(ctx context.Context, q Querier, query string, args ...any) (all []string, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

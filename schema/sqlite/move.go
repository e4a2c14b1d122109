package sqlite

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
	// The services at the new place share values of their own from their start on, and those here go on with theirs. Only
	// the keys of visitors are the same, so that nobody counts twice on the day of the move.
	tableNames = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
		AND name NOT IN ('moved', 'outbox', 'shared_values', 'goose_db_version') ORDER BY name`
	visitorKeys  = ` WHERE name GLOB '` + schema.SharedVisitorKeys + `*'`
	columnNames  = `SELECT name FROM pragma_table_info(?) ORDER BY cid`
	parentTables = `SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)`
	lastID       = `SELECT seq FROM sqlite_sequence WHERE name = ?`
	refusal      = `CREATE TRIGGER IF NOT EXISTS moved_%[1]s_%[2]s BEFORE %[3]s ON %[1]s
		BEGIN SELECT RAISE(ABORT, 'the data has moved to other engines'); END`
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
	err := withExisting(path, func(db *sql.DB) error {
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
	return move, wrap(err, "freeze %q", path)
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
	tables, err := stringsOf(db.QueryContext(ctx, tableNames))
	if err != nil {
		return err
	}
	for _, table := range tables {
		if slices.Contains(neverFrozen, table) {
			continue
		}
		columns, err := stringsOf(db.QueryContext(ctx, columnNames, table))
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

// ExportLinks calls each for every table of the link store in the file at path, as all are at one moment. Rows refer
// only to rows of the same table or of earlier ones.
func ExportLinks(ctx context.Context, path string, each func(schema.TableRows) error) error {
	err := withExisting(path, func(db *sql.DB) error {
		return transact(ctx, db, nil, func(tx *sql.Tx) error {
			tables, err := tablesInOrder(ctx, tx)
			if err != nil {
				return err
			}
			for _, name := range tables {
				if err := exportTable(ctx, tx, name, "", each); err != nil {
					return fmt.Errorf("table %s: %w", name, err)
				}
			}
			return exportTable(ctx, tx, "shared_values", visitorKeys, each)
		})
	})
	return wrap(err, "export %q", path)
}

// tablesInOrder returns the names of the tables, each behind those that it refers to.
func tablesInOrder(ctx context.Context, tx *sql.Tx) (ordered []string, err error) {
	left, err := stringsOf(tx.QueryContext(ctx, tableNames))
	for len(left) > 0 && err == nil {
		before := len(left)
		for _, name := range slices.Clone(left) {
			var parents []string
			if parents, err = stringsOf(tx.QueryContext(ctx, parentTables, name)); err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(parents, func(p string) bool { return p != name && slices.Contains(left, p) }) {
				ordered = append(ordered, name)
				left = slices.DeleteFunc(left, func(s string) bool { return s == name })
			}
		}
		if len(left) == before {
			return nil, schema.Errorf(schema.CodeInternal, "the tables %q refer to each other", left)
		}
	}
	return ordered, err
}

// exportTable exports the rows of a table for which a condition holds.
func exportTable(ctx context.Context, tx *sql.Tx, name, where string, each func(schema.TableRows) error) error {
	table := schema.TableRows{Name: name}
	err := tx.QueryRowContext(ctx, lastID, name).Scan(&table.LastID)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if table.Columns, err = stringsOf(tx.QueryContext(ctx, columnNames, name)); err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+strings.Join(table.Columns, ", ")+" FROM "+name+where)
	if err != nil {
		return err
	}
	defer rows.Close()
	values, into := make([]any, len(table.Columns)), make([]any, len(table.Columns))
	for i := range values {
		into[i] = &values[i]
	}
	table.Rows = func(yield func([]any, error) bool) {
		for rows.Next() {
			if err := rows.Scan(into...); !yield(values, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
	return each(table)
}

// stringsOf returns the one column of a query. Its arguments are the results of the query.
func stringsOf(rows *sql.Rows, err error) (all []string, _ error) {
	err = forEachRow(rows, err, func() error {
		var s string
		err := rows.Scan(&s)
		all = append(all, s)
		return err
	})
	return all, err
}

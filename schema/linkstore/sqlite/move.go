package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"linkstream/schema"
	"linkstream/schema/sqlitefile"
)

const (
	// Only the keys of visitors are the same at the new place, so that nobody counts twice on the day of the move.
	visitorKeys  = ` WHERE name GLOB '` + schema.SharedVisitorKeys + `*'`
	parentTables = `SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)`
	lastID       = `SELECT seq FROM sqlite_sequence WHERE name = ?`
)

// ExportLinks calls each for every table of the link store in the file at path, as all are at one moment. Rows refer
// only to rows of the same table or of earlier ones.
func ExportLinks(ctx context.Context, path string, each func(schema.TableRows) error) error {
	err := sqlitefile.Existing(path, func(db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // it only reads
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
	return sqlitefile.Wrap(err, "export %q", path)
}

// tablesInOrder returns the names of the tables, each behind those that it refers to.
func tablesInOrder(ctx context.Context, tx *sql.Tx) (ordered []string, err error) {
	left, err := sqlitefile.Tables(ctx, tx)
	for len(left) > 0 && err == nil {
		before := len(left)
		for _, name := range slices.Clone(left) {
			var parents []string
			if parents, err = sqlitefile.Strings(ctx, tx, parentTables, name); err != nil {
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
	if table.Columns, err = sqlitefile.Columns(ctx, tx, name); err != nil {
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

// CountLinks returns how many links the store in the file at path has, whose schema may be of any release.
func CountLinks(ctx context.Context, path string) (links int64, err error) {
	err = sqlitefile.Existing(path, func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT count(*) FROM links WHERE ordinal > 0").Scan(&links)
	})
	return links, sqlitefile.Wrap(err, "count links of %q", path)
}

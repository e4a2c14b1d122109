package postgres

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	takeTime     = `SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = 0`
	lockMove     = `SELECT pg_advisory_xact_lock(hashtextextended('linkstream move', 0))`
	hasMovedFrom = `SELECT to_regclass('moved_from') IS NOT NULL`
	isMovedFrom  = `SELECT count(*) FROM moved_from WHERE source = $1`
	putMovedFrom = `CREATE TABLE moved_from (source bytea PRIMARY KEY, moved_at timestamptz NOT NULL DEFAULT now())`
	setMovedFrom = `INSERT INTO moved_from (source) VALUES ($1)`
	hasAccounts  = `SELECT EXISTS (SELECT FROM accounts)`
	columnTypes  = `SELECT column_name, data_type FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1`
	tablesHere = `SELECT table_name FROM information_schema.tables
		WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
			AND table_name NOT IN ('moved_from', 'outbox', 'shared_values', 'goose_db_version')
		ORDER BY table_name`
	// Caches of edges have nothing of the rows that are imported.
	stopNoting    = `ALTER TABLE links DISABLE TRIGGER USER; ALTER TABLE domains DISABLE TRIGGER USER`
	goOnNoting    = `ALTER TABLE links ENABLE TRIGGER USER; ALTER TABLE domains ENABLE TRIGGER USER`
	noVisitorKeys = `DELETE FROM shared_values WHERE name LIKE '` + schema.SharedVisitorKeys + `%'`
	setSequence   = `SELECT setval(pg_get_serial_sequence($1, 'id'), $2)`
)

// Import fills an empty database with the rows of another link store, in one transaction: they keep their IDs, and no
// ID is used again. If the database has them already, from a move with this ID, Import does nothing and returns false.
// CodeConflict if it has other accounts. export calls each for every table, in an order in which rows refer to earlier
// ones only.
func (s *Store) Import(
	ctx context.Context, id schema.MoveID, export func(each func(schema.TableRows) error) error,
) (bool, error) {
	imported := false
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, takeTime)
		if err != nil {
			return err
		}
		if imported, err = claim(ctx, tx, id); err != nil || !imported {
			return err
		}
		missing, err := pgx.CollectRows(query(ctx, tx, tablesHere), pgx.RowTo[string])
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, stopNoting); err != nil {
			return err
		}
		err = export(func(table schema.TableRows) error {
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == table.Name })
			if err := importTable(ctx, tx, table); err != nil {
				return fmt.Errorf("import table %s: %w", table.Name, err)
			}
			return nil
		})
		if err == nil && len(missing) > 0 {
			err = schema.Errorf(schema.CodeInternal, "the other store has no tables %q", missing)
		}
		if err == nil {
			_, err = tx.Exec(ctx, goOnNoting)
		}
		return err
	})
	if err == nil && imported {
		_, err = s.pool.Exec(ctx, "ANALYZE") // otherwise the first queries are planned for empty tables
	}
	return imported, wrap(err, "import links")
}

// query returns the rows of a query, or its error as their error.
func query(ctx context.Context, tx pgx.Tx, sql string, args ...any) pgx.Rows {
	rows, _ := tx.Query(ctx, sql, args...) // CollectRows returns the error
	return rows
}

// claim marks the database as the target of a move, and reports whether it is still to be filled. The mark is only seen
// with the rows.
func claim(ctx context.Context, tx pgx.Tx, id schema.MoveID) (bool, error) {
	if _, err := tx.Exec(ctx, lockMove); err != nil {
		return false, err
	}
	var moved, used bool
	if err := tx.QueryRow(ctx, hasMovedFrom).Scan(&moved); err != nil {
		return false, err
	}
	if moved {
		var same int
		if err := tx.QueryRow(ctx, isMovedFrom, id[:]).Scan(&same); err != nil || same > 0 {
			return false, err
		}
	}
	if err := tx.QueryRow(ctx, hasAccounts).Scan(&used); err != nil {
		return false, err
	}
	if moved || used {
		return false, schema.Errorf(schema.CodeConflict, "the database is not empty: it has accounts of another service")
	}
	if _, err := tx.Exec(ctx, putMovedFrom); err != nil {
		return false, err
	}
	_, err := tx.Exec(ctx, setMovedFrom, id[:])
	return true, err
}

func importTable(ctx context.Context, tx pgx.Tx, table schema.TableRows) error {
	types := map[string]string{}
	var name, kind string
	_, err := pgx.ForEachRow(query(ctx, tx, columnTypes, table.Name), []any{&name, &kind}, func() error {
		types[name] = kind
		return nil
	})
	if err != nil {
		return err
	}
	here, there := slices.Sorted(maps.Keys(types)), slices.Sorted(slices.Values(table.Columns))
	if !slices.Equal(here, there) {
		return schema.Errorf(schema.CodeInternal, "it has the columns %q here and %q there", here, there)
	}
	if table.Name == "shared_values" { // edges that have begun here read the keys of the other store
		if _, err := tx.Exec(ctx, noVisitorKeys); err != nil {
			return err
		}
	}
	kinds := make([]string, len(table.Columns))
	for i, column := range table.Columns {
		kinds[i] = types[column]
	}
	next, stop := iter.Pull2(table.Rows)
	defer stop()
	source := pgx.CopyFromFunc(func() ([]any, error) { return nextRow(next, kinds) })
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{table.Name}, table.Columns, source); err != nil {
		return err
	}
	if table.LastID == 0 {
		return nil
	}
	_, err = tx.Exec(ctx, setSequence, table.Name, table.LastID)
	return err
}

// nextRow returns the next row as Postgres stores it, nil after the last one.
func nextRow(next func() ([]any, error, bool), kinds []string) ([]any, error) {
	row, err, ok := next()
	if err != nil || !ok {
		return nil, err
	}
	for i := range row {
		if row[i], err = convert(row[i], kinds[i]); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// convert returns the value of a column of this type.
func convert(value any, kind string) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case int64:
		switch kind {
		case "boolean":
			return v != 0, nil
		case "bigint", "integer":
			return v, nil
		case "timestamp with time zone":
			return time.UnixMilli(v).UTC(), nil
		}
	case string:
		if kind == "text" || kind == "jsonb" { // Postgres refuses what is no UTF-8, and zero bytes
			return strings.ToValidUTF8(strings.ReplaceAll(v, "\x00", ""), "\uFFFD"), nil
		}
	case []byte:
		if kind == "bytea" {
			return v, nil
		}
	}
	return nil, schema.Errorf(schema.CodeInternal, "a value of type %T does not fit a column of type %s", value, kind)
}

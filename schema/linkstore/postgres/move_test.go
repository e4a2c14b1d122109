//go:build engines

package postgres_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
	"linkstream/schema/linkstore/sqlite"
	"linkstream/schema/testkit"
)

const rowsPerTable = 2

// fillTables puts two rows into every table of the link store in a file, which has a value of its type in each column,
// and returns the names of the tables. All numbers in row n are n, so rows refer to each other.
func fillTables(t *testing.T, path string) (tables []string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	testkit.Must(t, err)
	defer testkit.Close(t, db)
	queryAll := func(query string, args ...any) [][]string {
		rows, err := db.QueryContext(t.Context(), query, args...)
		testkit.Must(t, err)
		defer rows.Close()
		columns, err := rows.Columns()
		testkit.Must(t, err)
		var all [][]string
		for rows.Next() {
			row, into := make([]string, len(columns)), make([]any, len(columns))
			for i := range row {
				into[i] = &row[i]
			}
			testkit.Must(t, rows.Scan(into...))
			all = append(all, row)
		}
		testkit.Must(t, rows.Err())
		return all
	}
	for _, table := range queryAll(`SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
		AND name NOT IN ('outbox', 'shared_values', 'goose_db_version')`) {
		tables = append(tables, table[0])
		for n := 1; n <= rowsPerTable; n++ {
			var names, values []string
			for _, column := range queryAll(`SELECT name, type FROM pragma_table_info(?)`, table[0]) {
				value := map[string]string{"INTEGER": fmt.Sprint(n), "TEXT": fmt.Sprintf("'text %d'", n),
					"BLOB": fmt.Sprintf("x'00ff0%d'", n)}[column[1]]
				if strings.Contains(table[1], "CHECK ("+column[0]+" IN (0, 1))") {
					value = fmt.Sprint(n % 2)
				}
				names, values = append(names, column[0]), append(values, value)
			}
			_, err := db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table[0], strings.Join(names,
				", "), strings.Join(values, ", ")))
			testkit.Must(t, err)
		}
	}
	slices.Sort(tables)
	return tables
}

// rowsOf returns the rows of a table as SQLite has them, in the order of their text.
func rowsOf(t *testing.T, conn *pgx.Conn, table string, columns []string) (all []string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT "+strings.Join(columns, ", ")+" FROM "+table)
	testkit.Must(t, err)
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		testkit.Must(t, err)
		for i, value := range values {
			switch v := value.(type) {
			case bool:
				values[i] = map[bool]int64{false: 0, true: 1}[v]
			case time.Time:
				values[i] = v.UnixMilli()
			}
		}
		all = append(all, fmt.Sprintf("%v", values))
	}
	testkit.Must(t, rows.Err())
	slices.Sort(all)
	return all
}

func TestImport(t *testing.T) {
	t.Parallel()
	id := schema.MoveID{1, 2, 3}
	path := filepath.Join(t.TempDir(), "links.db")
	source, err := sqlite.Open(t.Context(), path)
	testkit.Must(t, err)
	key := schema.SharedVisitorKeys + "2026-11-20"
	testkit.Must(t, source.SetSharedValue(t.Context(), key, []byte("of the source")))
	testkit.Must(t, source.SetSharedValue(t.Context(), schema.SharedPasswordKey, []byte("stays")))
	testkit.Close(t, source)
	tables := fillTables(t, path)
	export := func(each func(schema.TableRows) error) error { return sqlite.ExportLinks(t.Context(), path, each) }
	dsn := engines.Postgres(t)
	to, raw := openLinks(t, dsn), openRaw(t, dsn)
	testkit.Must(t, to.SetSharedValue(t.Context(), key, []byte("of an edge that has begun here")))

	t.Run("stores nothing if it fails", func(t *testing.T) {
		died := errors.New("died")
		_, err := to.Import(t.Context(), id, func(each func(schema.TableRows) error) error {
			return errors.Join(export(each), died)
		})
		if !errors.Is(err, died) {
			t.Fatalf("error %v", err)
		}
		testkit.Equal(t, "accounts", len(rowsOf(t, raw, "accounts", []string{"id"})), 0)
	})
	t.Run("wants every table", func(t *testing.T) {
		_, err := to.Import(t.Context(), id, func(func(schema.TableRows) error) error { return nil })
		testkit.WantError(t, err, schema.CodeInternal, `no tables ["accounts"`)
	})
	t.Run("wants every column", func(t *testing.T) {
		_, err := to.Import(t.Context(), id, func(each func(schema.TableRows) error) error {
			return export(func(table schema.TableRows) error {
				table.Columns = table.Columns[1:]
				return each(table)
			})
		})
		testkit.WantError(t, err, schema.CodeInternal, "it has the columns")
	})
	t.Run("stores every row of every table, once", func(t *testing.T) {
		for _, want := range []bool{true, false} {
			imported, err := to.Import(t.Context(), id, export)
			testkit.Must(t, err)
			testkit.Equal(t, "imported", imported, want)
			var seen []string
			testkit.Must(t, export(func(table schema.TableRows) error {
				var rows []string
				for row, err := range table.Rows {
					testkit.Must(t, err)
					rows = append(rows, fmt.Sprintf("%v", row))
				}
				slices.Sort(rows)
				if table.Name == "shared_values" {
					testkit.Equal(t, "shared values", rows, []string{fmt.Sprintf("%v", []any{key, []byte("of the source")})})
					value, err := to.SharedValue(t.Context(), key, nil)
					testkit.Must(t, err)
					testkit.Equal(t, "key of visitors", string(value), "of the source")
					return nil
				}
				testkit.Equal(t, "rows", len(rows), rowsPerTable)
				testkit.Equal(t, table.Name, rowsOf(t, raw, table.Name, table.Columns), rows)
				seen = append(seen, table.Name)
				return nil
			}))
			slices.Sort(seen)
			testkit.Equal(t, "tables", seen, tables)
			pending, err := to.PendingChanges(t.Context(), schema.OutboxPosition{})
			testkit.Must(t, err)
			testkit.Equal(t, "pending changes", len(pending.Changes), 0)
		}
	})
	t.Run("notes changes from then on", func(t *testing.T) {
		link := schema.Link{AccountID: 1, Hash: "after", URL: "https://example.org/", CreatedAt: time.Now()}
		testkit.Must(t, to.CreateLink(t.Context(), &link))
		pending, err := to.PendingChanges(t.Context(), schema.OutboxPosition{})
		testkit.Must(t, err)
		testkit.Equal(t, "pending changes", len(pending.Changes), 1)
	})
	t.Run("gives no ID again", func(t *testing.T) {
		account := schema.Account{Email: "new@example.org", CreatedAt: time.Now()}
		testkit.Must(t, to.CreateAccount(t.Context(), &account))
		testkit.Equal(t, "ID", account.ID, rowsPerTable+1)
	})
	t.Run("refuses the move of another service", func(t *testing.T) {
		_, err := to.Import(t.Context(), schema.MoveID{9}, export)
		testkit.WantError(t, err, schema.CodeConflict, "accounts of another service")
	})
	t.Run("refuses a database in use", func(t *testing.T) {
		used := openLinks(t, engines.Postgres(t))
		testkit.Must(t, used.CreateAccount(t.Context(), &schema.Account{Email: "a@example.org", CreatedAt: time.Now()}))
		_, err := used.Import(t.Context(), id, export)
		testkit.WantError(t, err, schema.CodeConflict, "accounts of another service")
	})
}

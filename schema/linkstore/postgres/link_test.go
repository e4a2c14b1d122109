//go:build engines

package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func openLinks(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	links, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
	testkit.Must(t, err)
	t.Cleanup(func() { links.Close() })
	return links
}

// openRaw connects to a database without the store.
func openRaw(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	raw, err := pgx.Connect(t.Context(), dsn)
	testkit.Must(t, err)
	t.Cleanup(func() { raw.Close(context.Background()) })
	return raw
}

func exec(t testing.TB, raw *pgx.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := raw.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// withParameter returns dsn with another parameter.
func withParameter(t testing.TB, dsn, name, value string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	testkit.Must(t, err)
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// openFresh returns a storetest.Open of stores whose statements are added to texts. The suite uses one store at a time,
// so all have one schema, whose rows are deleted for each: to create its tables takes far longer.
func openFresh(t *testing.T, texts *storetest.Texts) storetest.Open[schema.Database] {
	database := engines.Postgres(t)
	raw := openRaw(t, database)
	name := enginetest.Name()
	exec(t, raw, "CREATE SCHEMA "+name)
	dsn := withParameter(t, database, "search_path", name)
	openLinks(t, dsn) // creates the tables
	exec(t, raw, "SET search_path = "+name)
	empty := deleteRows(t, raw)
	return func(t *testing.T) (schema.Database, func() schema.Database) {
		exec(t, raw, "UPDATE accounts SET link_count = 0") // an account with links is not deleted
		exec(t, raw, empty)
		exec(t, raw, "DELETE FROM outbox") // what triggers have written meanwhile
		links := openLinks(t, dsn)
		return texts.Of(links.Store), func() schema.Database {
			testkit.Must(t, links.Close())
			return texts.Of(openLinks(t, dsn).Store)
		}
	}
}

// deleteRows returns a statement that deletes the rows of all tables. It is one, since references are checked at the
// end of each.
func deleteRows(t *testing.T, raw *pgx.Conn) string {
	t.Helper()
	rows, err := raw.Query(t.Context(), "SELECT format('deleted_%1$s AS (DELETE FROM %1$s)', tablename) FROM pg_tables "+
		"WHERE schemaname = current_schema() AND tablename <> 'goose_db_version'")
	testkit.Must(t, err)
	deletions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	testkit.Must(t, err)
	return "WITH " + strings.Join(deletions, ", ") + " SELECT"
}

func TestStore(t *testing.T) {
	t.Parallel()
	var texts storetest.Texts
	storetest.TestDatabase(t, openFresh(t, &texts))
	t.Run("every statement finds its rows by an index", func(t *testing.T) { testPlans(t, &texts) })
	t.Run("a late holder of a webhook loses no clicks", func(t *testing.T) {
		storetest.TestLateHolder(t, openLinks(t, engines.Postgres(t)).Store)
	})
	t.Run("a call takes effect as a whole", func(t *testing.T) {
		dsn := engines.Postgres(t)
		links, raw := openLinks(t, dsn), openRaw(t, dsn)
		storetest.TestAtomicity(t, links.Store, func(t *testing.T) []string { return allRows(t, raw) }, &texts)
	})
}

// allRows returns the rows of all tables, in any order that does not change.
func allRows(t *testing.T, raw *pgx.Conn) []string {
	t.Helper()
	const tables = `
		SELECT string_agg(format('SELECT %1$L || t::text FROM %1$I t', tablename), ' UNION ALL ') || ' ORDER BY 1'
		FROM pg_tables WHERE schemaname = current_schema()`
	var query string
	testkit.Must(t, raw.QueryRow(t.Context(), tables).Scan(&query))
	rows, err := raw.Query(t.Context(), query)
	testkit.Must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	testkit.Must(t, err)
	return all
}

func TestFolding(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, raw := openLinks(t, dsn), openRaw(t, dsn)
	storetest.TestFolding(t, links, func(statement string) { exec(t, raw, statement) })
}

func TestTakenNames(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, raw := openLinks(t, dsn), openRaw(t, dsn)
	storetest.TestTakenNames(t, links, func(statement string) { exec(t, raw, statement) })
}

func TestUnstorableText(t *testing.T) {
	t.Parallel()
	links := openLinks(t, engines.Postgres(t))
	for _, text := range []string{"\xff.example.org", "a\x00b", "\xed\xa0\x80"} { // as a Host header may have them
		t.Run("is not found", func(t *testing.T) {
			if _, err := links.VerifiedDomain(t.Context(), text); schema.ErrorCode(err) != schema.CodeNotFound {
				t.Errorf("%q as host: got error %v", text, err)
			}
			if _, err := schema.FindLink(t.Context(), links, 0, text); schema.ErrorCode(err) != schema.CodeNotFound {
				t.Errorf("%q as hash: got error %v", text, err)
			}
		})
	}
}

package postgres_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema"
	"linkstream/schema/postgres"
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

// openRaw connects to a database as another program might.
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

// with returns dsn with another parameter.
func with(t testing.TB, dsn, name, value string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	testkit.Must(t, err)
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// fresh returns a storetest.Open: each store has a schema of its own in one database, which is made much faster than a
// database is.
func fresh(t *testing.T) storetest.Open[storetest.LinkStores] {
	database := engines.Postgres(t)
	raw := openRaw(t, database)
	return func(t *testing.T) (storetest.LinkStores, func() storetest.LinkStores) {
		name := enginetest.Name()
		exec(t, raw, "CREATE SCHEMA "+name)
		dsn := with(t, database, "search_path", name)
		links := openLinks(t, dsn)
		return links, func() storetest.LinkStores {
			testkit.Must(t, links.Close())
			return openLinks(t, dsn)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	storetest.TestLinkStores(t, fresh(t))
}

func TestRates(t *testing.T) {
	t.Parallel()
	storetest.TestRateStore(t, fresh(t))
}

func TestUnstorableText(t *testing.T) {
	t.Parallel()
	links := openLinks(t, engines.Postgres(t))
	for _, text := range []string{"\xff.example.org", "a\x00b", "\xed\xa0\x80"} { // as a Host header may have it
		t.Run("is not found", func(t *testing.T) {
			if _, err := links.VerifiedDomain(t.Context(), text); schema.ErrorCode(err) != schema.CodeNotFound {
				t.Errorf("%q as host: got error %v", text, err)
			}
			if _, err := links.Link(t.Context(), 0, text); schema.ErrorCode(err) != schema.CodeNotFound {
				t.Errorf("%q as hash: got error %v", text, err)
			}
		})
	}
}

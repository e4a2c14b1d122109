package clickhouse_test

import (
	"fmt"
	"testing"

	"github.com/pressly/goose/v3"

	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func openClicks(t testing.TB, dsn string) *clickhouse.ClickStore {
	t.Helper()
	clicks, err := clickhouse.OpenClickStore(t.Context(), clickhouse.Config{DSN: dsn})
	testkit.Must(t, err)
	t.Cleanup(func() { clicks.Close() })
	return clicks
}

// newSchema migrates a new database and returns a function that makes the tables of other new databases copies of its tables. The
// migrations cost the server more than all else that a small test does.
func newSchema(t *testing.T) func(t *testing.T, dsn string) {
	t.Helper()
	dsn := engines.ClickHouse(t)
	openClicks(t, dsn)
	raw := openRaw(t, dsn)
	var name string
	var tables []string
	testkit.Must(t, raw.QueryRow(t.Context(), `SELECT currentDatabase(), groupArray(name) FROM system.tables
		WHERE database = currentDatabase()`).Scan(&name, &tables))
	copyTo := func(t *testing.T, dsn string) {
		t.Helper()
		to := openRaw(t, dsn)
		for _, table := range tables {
			exec(t, to, fmt.Sprintf("CREATE TABLE %s AS %s.%[1]s", table, name))
		}
		exec(t, to, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s.%[1]s", goose.DefaultTablename, name))
	}
	t.Run("a copied schema is that of the migrations", func(t *testing.T) {
		copied := engines.ClickHouse(t)
		copyTo(t, copied)
		openClicks(t, copied)
		testkit.Equal(t, "schema", catalogue(t, openRaw(t, copied)), catalogue(t, raw))
	})
	return copyTo
}

func TestClickStore(t *testing.T) {
	t.Parallel()
	copySchema := newSchema(t)
	for protocol, database := range map[string]func(testing.TB) string{
		"native protocol": engines.ClickHouse, "HTTP": engines.ClickHouseHTTP,
	} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			storetest.TestClickStore(t, func(t *testing.T) (storetest.ClickStores, func() storetest.ClickStores) {
				dsn := database(t)
				copySchema(t, dsn)
				clicks := openClicks(t, dsn)
				return clicks, func() storetest.ClickStores {
					testkit.Must(t, clicks.Close())
					return openClicks(t, dsn)
				}
			})
		})
	}
}

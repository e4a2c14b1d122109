//go:build engines

package clickhouse_test

import (
	"testing"

	"linkstream/schema/clickhouse"
	"linkstream/schema/clickhouse/clickhousetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func openClicks(t testing.TB, dsn string) *clickhouse.ClickStore {
	t.Helper()
	clicks, err := clickhousetest.Open(t.Context(), clickhouse.Config{DSN: dsn})
	testkit.Must(t, err)
	t.Cleanup(func() { clicks.Close() })
	return clicks
}

// opens returns an Open of stores in new databases.
func opens(database func(testing.TB) string) storetest.Open[*clickhouse.ClickStore] {
	return func(t *testing.T) (*clickhouse.ClickStore, func() *clickhouse.ClickStore) {
		dsn := database(t)
		clicks := openClicks(t, dsn)
		return clicks, func() *clickhouse.ClickStore {
			testkit.Must(t, clicks.Close())
			return openClicks(t, dsn)
		}
	}
}

func TestClickStore(t *testing.T) {
	t.Parallel()
	storetest.TestClickStore(t, opens(engines.ClickHouse))
	storetest.TestPositions(t, opens(engines.ClickHouse))
}

// By HTTP, inserts, arguments, errors, cancelled calls and results take another way. The statements are the same.
func TestClickStoreByHTTP(t *testing.T) {
	t.Parallel()
	storetest.TestCounting(t, opens(engines.ClickHouseHTTP))
	storetest.TestPositions(t, opens(engines.ClickHouseHTTP))
	storetest.TestReportQueries(t, opens(engines.ClickHouseHTTP))
}

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

func TestClickStore(t *testing.T) {
	t.Parallel()
	for protocol, database := range map[string]func(testing.TB) string{
		"native protocol": engines.ClickHouse, "HTTP": engines.ClickHouseHTTP,
	} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			storetest.TestClickStore(t, func(t *testing.T) (storetest.ClickStores, func() storetest.ClickStores) {
				dsn := database(t)
				clicks := openClicks(t, dsn)
				return clicks, func() storetest.ClickStores {
					testkit.Must(t, clicks.Close())
					return openClicks(t, dsn)
				}
			})
		})
	}
}

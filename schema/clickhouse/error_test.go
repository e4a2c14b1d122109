//go:build engines

package clickhouse_test

import (
	"context"
	"testing"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestErrors(t *testing.T) {
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	batch := new(schema.ClickBatch)
	storetest.NewTraffic().Fill(batch, 0, 10_000)
	insert(t, store, batch)

	t.Run("a server without enough memory is unavailable", func(t *testing.T) {
		short := clickhouse.Config{DSN: dsn + "?max_memory_usage=1&max_untracked_memory=1"}
		_, err := clickhouse.OpenClickStore(t.Context(), short)
		testkit.WantCode(t, err, schema.CodeUnavailable)
	})
	t.Run("a canceled call is an internal error, not an unavailable server", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, call := range callsOf(store, batch) {
			if err := call(ctx); schema.ErrorCode(err) != schema.CodeInternal {
				t.Errorf("%s: got error %v", name, err)
			}
		}
	})
	t.Run("a missing table is unavailable, as before Migrate", func(t *testing.T) {
		exec(t, raw, "DROP TABLE clicks")
		for name, call := range callsOf(store, batch) {
			if err := call(t.Context()); schema.ErrorCode(err) != schema.CodeUnavailable {
				t.Errorf("%s: got error %v", name, err)
			}
		}
	})
	t.Run("another table is an internal error, not an unavailable server", func(t *testing.T) {
		exec(t, raw, "CREATE TABLE clicks (other Int8) ENGINE = Memory")
		for name, call := range callsOf(store, batch) {
			if err := call(t.Context()); schema.ErrorCode(err) != schema.CodeInternal {
				t.Errorf("%s: got error %v", name, err)
			}
		}
	})
}

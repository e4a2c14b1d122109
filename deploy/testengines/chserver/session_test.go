//go:build linux

package main_test

import (
	"context"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A session that is used again has nothing of another query.
func TestSessionsAreAsTheirClientWantsThem(t *testing.T) {
	const read = "SELECT toString(getSetting('max_block_size')) || currentDatabase()"
	conns := []driver.Conn{
		open(t, engines.ClickHouse(t), clickhouse.CompressionNone),
		open(t, engines.ClickHouse(t), clickhouse.CompressionNone),
	}
	first := map[string]bool{}
	for range 2 {
		for _, conn := range conns {
			for _, settings := range []clickhouse.Settings{{}, {"max_block_size": 777}, {"max_block_size": 778}} {
				ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(settings))
				first[answer(t, ctx, conn, read)] = true
				if err := conn.Exec(ctx, "SELECT 1; SET max_block_size = 779"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(first) != 6 {
			t.Fatalf("two databases with three settings each answer %v", first)
		}
	}
}

// More are not kept than some; the others are closed, and not used again.
func TestManySessions(t *testing.T) {
	conn := open(t, engines.ClickHouse(t), clickhouse.CompressionNone)
	use := func(n int) {
		settings := clickhouse.WithSettings(clickhouse.Settings{"max_block_size": 1000 + n})
		answer(t, clickhouse.Context(t.Context(), settings), conn, "SELECT 'x'")
	}
	for n := range 40 {
		use(n)
	}
	for n := range 40 {
		use(39 - n) // those that are kept, and then those that are not
	}
}

func answer(t *testing.T, ctx context.Context, conn driver.Conn, query string) (text string) {
	t.Helper()
	if err := conn.QueryRow(ctx, query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

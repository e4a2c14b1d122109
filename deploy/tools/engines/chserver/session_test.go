//go:build linux

package main_test

import (
	"context"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
)

// A session that is used again keeps nothing of another query.
func TestSessionsHaveOnlyTheirOwnSettings(t *testing.T) {
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

func TestIdleSessionsAreBounded(t *testing.T) {
	const sessions, maxIdle = 40, 16
	// An engine of its own: other clients would use and replace idle sessions, too.
	conn := open(t, enginetest.Own(t, testengines.StartChserver).Addr, clickhouse.CompressionNone)
	session := func(n int) string { // returns the tag of the session that served the query
		settings := clickhouse.WithSettings(clickhouse.Settings{"max_block_size": 1000 + n})
		return answer(t, clickhouse.Context(t.Context(), settings), conn, "SELECT getSetting('log_comment')")
	}
	first := make([]string, sessions)
	for n := range sessions {
		first[n] = session(n)
	}
	kept := 0
	for n := sessions - 1; n >= 0; n-- { // the ones used last come first: they are the ones that are kept
		if session(n) == first[n] {
			kept++
		}
	}
	if kept != maxIdle {
		t.Errorf("%d of %d idle sessions were kept, want %d", kept, sessions, maxIdle)
	}
}

func answer(t *testing.T, ctx context.Context, conn driver.Conn, query string) (text string) {
	t.Helper()
	if err := conn.QueryRow(ctx, query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

//go:build linux

package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const wideTable = `CREATE TABLE clicks (
	link_id UInt64, clicked_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)), device LowCardinality(String),
	country LowCardinality(Nullable(String)), tags Array(LowCardinality(String)), attributes Map(String, String),
	n Nullable(Int32), e Enum8('a' = 1, 'b' = 2), id UUID, day Date, fixed FixedString(4), amount Decimal(18, 4), note String
) ENGINE MergeTree PARTITION BY toYYYYMM(clicked_at) ORDER BY (link_id, clicked_at)
TTL toDateTime(clicked_at) + INTERVAL 50 YEAR`

var clickedAt = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// note is text that has what ends a line, a value or a statement somewhere.
func note(i int) string { return fmt.Sprintf("n%d\n\n;\r\n\x00`'\"\\", i) }

func TestInsertedRowsAreReadBack(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		const rows = 20_000
		exec(t, conn, wideTable)
		batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO clicks")
		if err != nil {
			t.Fatal(err)
		}
		de, negative := "DE", int32(-7)
		for i := range rows {
			country, n, tags := &de, &negative, []string{"x", "y"}
			if i%2 == 0 {
				country, n, tags = nil, nil, nil
			}
			err := batch.Append(uint64(i%1000), clickedAt.Add(time.Duration(i)*time.Millisecond), "tab\nlet;'\x00", country, tags,
				map[string]string{"k": "v"}, n, "b", "61f0c404-5cb3-11e7-907b-a6006ad3dba0", clickedAt, "abcd", "1.2345", note(i))
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := batch.Send(); err != nil {
			t.Fatal(err)
		}

		for where, want := range map[string]uint64{
			"true": rows,
			`device = 'tab\nlet;\'\0' AND e = 'b' AND fixed = 'abcd' AND amount = 1.2345`: rows,
			"day = '2026-01-02' AND clicked_at >= '2026-01-02 03:04:05.678'":              rows,
			"country IS NULL AND n IS NULL AND empty(tags)":                               rows / 2,
			"country = 'DE' AND n = -7 AND tags = ['x', 'y'] AND attributes['k'] = 'v'":   rows / 2,
		} {
			if got := number(t, conn, "SELECT count() FROM clicks WHERE "+where); got != want {
				t.Errorf("%s: got %d, want %d", where, got, want)
			}
		}
		var notes []string
		const inOrder = "SELECT groupArray(note) FROM (SELECT note FROM clicks ORDER BY clicked_at)"
		if err := conn.QueryRow(t.Context(), inOrder).Scan(&notes); err != nil {
			t.Fatal(err)
		}
		for i, got := range notes {
			if got != note(i) {
				t.Fatalf("row %d: got %q, want %q", i, got, note(i))
			}
		}
	})
}

// The first byte of a block's columns is their number: one that is white space, or ends a statement, is data, too.
func TestInsertOfAsManyColumnsAsAControlCharacterIs(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		for _, n := range []int{'\t', '\n', '\r', ' ', ';'} {
			var names, columns []string
			for i := range n {
				names, columns = append(names, fmt.Sprintf("c%d", i)), append(columns, fmt.Sprintf("c%d UInt8", i))
			}
			exec(t, conn, fmt.Sprintf("CREATE TABLE t%d (%s) ENGINE MergeTree ORDER BY c0", n, strings.Join(columns, ", ")))
			batch, err := conn.PrepareBatch(t.Context(), fmt.Sprintf("INSERT INTO t%d (%s)", n, strings.Join(names, ", ")))
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if err := batch.Append(slices.Repeat([]any{uint8('\n')}, n)...); err != nil {
					t.Fatal(err)
				}
			}
			if err := batch.Send(); err != nil {
				t.Fatal(err)
			}
			if got := number(t, conn, fmt.Sprintf("SELECT sum(c0 + c%d) FROM t%d", n-1, n)); got != 10*2*'\n' {
				t.Errorf("%d columns: got sum %d", n, got)
			}
		}
	})
}

func TestInsertOfRowsInTheStatement(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		exec(t, conn, "CREATE TABLE few (n UInt8, CONSTRAINT small CHECK n < 10) ENGINE MergeTree ORDER BY n")
		exec(t, conn, "INSERT INTO few VALUES (1), (2)")
		exec(t, conn, "INSERT INTO few SELECT number + 3 FROM numbers(3)")
		if got := number(t, conn, "SELECT sum(n) FROM few"); got != 1+2+3+4+5 {
			t.Errorf("got sum %d", got)
		}
		batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO few (n)")
		if err != nil {
			t.Fatal(err)
		}
		if err := batch.Append(uint8(50)); err != nil {
			t.Fatal(err)
		}
		const violatedConstraint = 469
		if err := batch.Send(); code(err) != violatedConstraint {
			t.Errorf("insert against a constraint: %v", err)
		}
	})
}

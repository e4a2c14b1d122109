//go:build linux

package main_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/schema/testkit"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// endless is a query that ends when it is made to.
const endless = "SELECT sum(cityHash64(number, rand())) FROM numbers_mt(100000000000)"

func TestParameters(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		text := "it's \"q\"\\\n"
		ctx := clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{"s": "it's", "a": "[1,2]"}))
		var s string
		var a []uint8
		err := conn.QueryRow(ctx, "SELECT {s:String}, {a:Array(UInt8)}").Scan(&s, &a)
		if err != nil || s != "it's" || len(a) != 2 {
			t.Errorf("by the server: got %q, %v, %v", s, a, err)
		}
		if got := number(t, conn, "SELECT length(?) + length(?)", text, []uint64{1, 2, 3}); got != uint64(len(text)+3) {
			t.Errorf("by position: got %d", got)
		}
		if got := number(t, conn, "SELECT toUInt64(3 IN (@l))", clickhouse.Named("l", []uint64{1, 2, 3})); got != 1 {
			t.Errorf("by name: got %d", got)
		}
	})
}

func TestSettingsHoldForTheirQuery(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		settings := clickhouse.WithSettings(clickhouse.Settings{"max_block_size": 777})
		for ctx, want := range map[context.Context]bool{clickhouse.Context(t.Context(), settings): true, t.Context(): false} {
			var value string
			err := conn.QueryRow(ctx, "SELECT toString(getSetting('max_block_size'))").Scan(&value)
			if err != nil || (value == "777") != want {
				t.Errorf("got %s, %v", value, err)
			}
		}
	})
}

// By HTTP it has none: the format's, on a server, too.
func TestResultOfNoRowsHasColumns(t *testing.T) {
	conn := open(t, engines.ClickHouse(t), clickhouse.CompressionLZ4)
	rows, err := conn.Query(t.Context(), "SELECT number AS a, toLowCardinality('x') AS b FROM numbers(0)")
	if err != nil {
		t.Fatal(err)
	}
	if rows.Next() || rows.Err() != nil || strings.Join(rows.Columns(), " ") != "a b" {
		t.Errorf("got columns %v, error %v", rows.Columns(), rows.Err())
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}

func TestResultOfManyBlocks(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		rows, err := conn.Query(t.Context(), "SELECT number, toString(number) FROM numbers(100000)")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var n, sum uint64
		var text string
		for rows.Next() {
			if err := rows.Scan(&n, &text); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if rows.Err() != nil || sum != 100000*99999/2 {
			t.Errorf("got sum %d, error %v", sum, rows.Err())
		}
	})
}

func TestExceptionsHaveTheirCodes(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		exec(t, conn, "CREATE TABLE t (a UInt8) ENGINE Memory")
		for sql, want := range map[string]int32{
			"SELEC 1":                                      62,
			"SELECT * FROM missing":                        60,
			"SELECT missing FROM t":                        47,
			"SELECT * FROM missing.t":                      81,
			"DROP TABLE missing":                           60,
			"SELECT 1 SETTINGS missing = 1":                115,
			"CREATE TABLE t (a UInt8) ENGINE Memory":       57,
			"SELECT throwIf(number = 5) FROM numbers(10)":  395,
			endless + " SETTINGS max_execution_time = 0.1": 159,
		} {
			if err := conn.Exec(t.Context(), sql); code(err) != want {
				t.Errorf("%s: got %v, want code %d", sql, err, want)
			}
		}
		if _, err := conn.PrepareBatch(t.Context(), "INSERT INTO missing (a)"); code(err) != 60 {
			t.Errorf("insert into a missing table: %v", err)
		}
		exec(t, conn, "SELECT 1") // the connection still serves
	})
}

func TestQueryWhoseClientLeavesIsKilled(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		err := conn.Exec(ctx, endless)
		if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(fmt.Sprint(err), "timeout") {
			t.Errorf("got %v", err)
		}
		await(t, conn, 0)
	})
}

func TestKillQueryFindsItByTheIDThatItsClientGaveIt(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		ended := make(chan error)
		go func() {
			ended <- conn.Exec(clickhouse.Context(t.Context(), clickhouse.WithQueryID("it's endless")), endless)
		}()
		await(t, conn, 1)
		exec(t, conn, `KILL QUERY WHERE query_id = 'it\'s endless' SYNC`)
		const wasCancelled = 394
		if err := <-ended; code(err) != wasCancelled {
			t.Errorf("got %v", err)
		}
	})
}

// TestKillQueryFindsAnInsertWhoseRowsAreNotThereYet is about the native protocol. By HTTP, rows come with the statement.
func TestKillQueryFindsAnInsertWhoseRowsAreNotThereYet(t *testing.T) {
	conn := open(t, engines.ClickHouse(t), clickhouse.CompressionLZ4)
	exec(t, conn, "CREATE TABLE t (n UInt64) ENGINE MergeTree ORDER BY n")
	batch, err := conn.PrepareBatch(clickhouse.Context(t.Context(), clickhouse.WithQueryID("waits")), "INSERT INTO t (n)")
	testkit.Must(t, err)
	testkit.Must(t, batch.Append(uint64(1)))
	exec(t, conn, "KILL QUERY WHERE query_id = 'waits' SYNC")
	if err := batch.Send(); err == nil {
		t.Error("the insert succeeded after it was killed")
	}
	if n := number(t, conn, "SELECT count() FROM t"); n != 0 {
		t.Errorf("%d rows of an insert that was killed", n)
	}
}

// await waits until n endless queries run.
func await(t *testing.T, conn driver.Conn, n uint64) {
	t.Helper()
	const running = "SELECT count() FROM system.processes WHERE startsWith(query, 'SELECT sum(cityHash64')"
	testkit.Eventually(t, fmt.Sprintf("%d queries run", n), func() bool { return number(t, conn, running) == n })
}

func TestClientsAtTheSameTimeReadTheirOwnWrites(t *testing.T) {
	eachProtocol(t, func(t *testing.T, conn driver.Conn) {
		exec(t, conn, "CREATE TABLE t (client UInt8, n UInt64) ENGINE MergeTree ORDER BY client")
		var clients sync.WaitGroup
		for client := range uint8(8) {
			clients.Go(func() {
				for round := range uint64(5) {
					if err := insertHundred(t.Context(), conn, client); err != nil {
						t.Error(err)
						return
					}
					var n uint64
					err := conn.QueryRow(t.Context(), "SELECT count() FROM t WHERE client = ?", client).Scan(&n)
					if err != nil || n != 100*(round+1) {
						t.Errorf("client %d: got %d rows after %d inserts, %v", client, n, round+1, err)
						return
					}
				}
			})
		}
		clients.Wait()
	})
}

func insertHundred(ctx context.Context, conn driver.Conn, client uint8) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO t")
	if err != nil {
		return err
	}
	for i := range uint64(100) {
		if err := batch.Append(client, i); err != nil {
			return err
		}
	}
	return batch.Send()
}

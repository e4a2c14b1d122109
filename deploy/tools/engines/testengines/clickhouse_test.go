package testengines_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/deploy/tools/engines/testengines"
)

func TestClickHouse(t *testing.T) {
	for name, addr := range map[string]func(*testengines.Engine) string{"native protocol": nativeAddr, "HTTP": httpAddr} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testEngine(t, testengines.StartClickHouse, clickhouseStore{addr})
		})
	}
}

func nativeAddr(e *testengines.Engine) string { return e.Addr }
func httpAddr(e *testengines.Engine) string   { return e.HTTPAddr }

type clickhouseStore struct {
	addr func(*testengines.Engine) string
}

func (s clickhouseStore) write(ctx context.Context, e *testengines.Engine, value string) error {
	return s.with(e, func(conn driver.Conn) error {
		if err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS kept (value String) ENGINE MergeTree ORDER BY value"); err != nil {
			return err
		}
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO kept")
		if err != nil {
			return err
		}
		return errors.Join(batch.Append(value), batch.Send())
	})
}

func (s clickhouseStore) read(ctx context.Context, e *testengines.Engine) (values []string, err error) {
	err = s.with(e, func(conn driver.Conn) error {
		return conn.QueryRow(ctx, "SELECT arraySort(groupArray(value)) FROM kept").Scan(&values)
	})
	return values, err
}

func (s clickhouseStore) with(e *testengines.Engine, f func(driver.Conn) error) error {
	options, err := clickhouse.ParseDSN(s.addr(e))
	if err != nil {
		return err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close())
}

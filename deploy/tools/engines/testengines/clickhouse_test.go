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
	t.Parallel()
	testEngine(t, testengines.StartClickHouse, clickhouseStore{})
}

// clickhouseStore writes by the native protocol and reads by HTTP.
type clickhouseStore struct{}

func (clickhouseStore) write(ctx context.Context, e *testengines.Engine, value string) error {
	return withClickHouse(e.Addr, func(conn driver.Conn) error {
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

func (clickhouseStore) read(ctx context.Context, e *testengines.Engine) (values []string, err error) {
	err = withClickHouse(e.HTTPAddr, func(conn driver.Conn) error {
		return conn.QueryRow(ctx, "SELECT arraySort(groupArray(value)) FROM kept").Scan(&values)
	})
	return values, err
}

func withClickHouse(address string, f func(driver.Conn) error) error {
	options, err := clickhouse.ParseDSN(address)
	if err != nil {
		return err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close())
}

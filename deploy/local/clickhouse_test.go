package local_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/deploy/local"
)

func TestClickHouse(t *testing.T) {
	t.Setenv(local.ClickHouseEnv, "")
	t.Run("by the native protocol", func(t *testing.T) {
		testEngine(t, local.ClickHouse, clickhouseStore{nativeAddr})
	})
	t.Run("by HTTP", func(t *testing.T) {
		testEngine(t, local.ClickHouse, clickhouseStore{httpAddr})
	})
}

func nativeAddr(e *local.Engine) string { return e.Addr }
func httpAddr(e *local.Engine) string   { return e.HTTPAddr }

type clickhouseStore struct {
	addr func(*local.Engine) string
}

func (s clickhouseStore) write(ctx context.Context, e *local.Engine, value string) error {
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

func (s clickhouseStore) read(ctx context.Context, e *local.Engine) (values []string, err error) {
	err = s.with(e, func(conn driver.Conn) error {
		return conn.QueryRow(ctx, "SELECT arraySort(groupArray(value)) FROM kept").Scan(&values)
	})
	return values, err
}

func (s clickhouseStore) with(e *local.Engine, f func(driver.Conn) error) error {
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

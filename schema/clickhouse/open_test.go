//go:build engines

package clickhouse_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// openRaw connects to a database without the store.
func openRaw(t testing.TB, dsn string) driver.Conn {
	t.Helper()
	options, err := ch.ParseDSN(dsn)
	testkit.Must(t, err)
	raw, err := ch.Open(options)
	testkit.Must(t, err)
	t.Cleanup(func() { raw.Close() })
	return raw
}

func openDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	options, err := ch.ParseDSN(dsn)
	testkit.Must(t, err)
	db := ch.OpenDB(options)
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t testing.TB, raw driver.Conn, statement string) {
	t.Helper()
	if err := raw.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// number returns the result of a query, which is a number.
func number(t testing.TB, raw driver.Conn, query string) (n uint64) {
	t.Helper()
	if err := raw.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestNew(t *testing.T) {
	store, err := clickhouse.New(t.Context(), clickhouse.Config{DSN: engines.ClickHouse(t)})
	testkit.Must(t, err)
	defer testkit.Close(t, store)
	for name, read := range map[string]func() error{
		"ClickCounts": func() error { _, err := store.ClickCounts(t.Context(), 1, []int64{1}); return err },
		"LinkStats":   func() error { _, err := store.LinkStats(t.Context(), 1); return err },
		"Report": func() error {
			_,
				err := store.Report(t.Context(), storetest.Days(1, nil, time.Now(), 3))
			return err
		},
	} {
		t.Run(name+" is unavailable before Migrate",
			func(t *testing.T) { testkit.WantCode(t, read(), schema.CodeUnavailable) })
	}
	testkit.Must(t, store.Migrate(t.Context()))
	_, err = store.ClickCounts(t.Context(), 1, []int64{1})
	testkit.Must(t, err)
}

func TestOpen(t *testing.T) {
	t.Run("several processes migrate an empty database once", func(t *testing.T) {
		dsn := engines.ClickHouse(t)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				clicks, err := clickhouse.OpenClickStore(t.Context(), clickhouse.Config{DSN: dsn})
				if err != nil {
					t.Error(err)
					return
				}
				clicks.Close()
			})
		}
		group.Wait()
		raw := openRaw(t, dsn)
		if n := number(t, raw, `SELECT count() FROM goose_db_version WHERE version_id = 1`); n != 1 {
			t.Errorf("migration 1 was applied %d times", n)
		}
		if n := number(t, raw, `SELECT count() FROM system.tables WHERE database = currentDatabase()`); n != 6 {
			t.Errorf("%d tables exist, want clicks, click_gaps, compacted_months, kept_visitors, imported_clicks and "+
				"goose_db_version", n)
		}
	})
	t.Run("rejects a database of a newer program", func(t *testing.T) {
		dsn := engines.ClickHouse(t)
		openClicks(t, dsn)
		exec(t, openRaw(t, dsn), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
		_, err := clickhouse.OpenClickStore(t.Context(), clickhouse.Config{DSN: dsn})
		testkit.WantError(t, err, schema.CodeInternal, "version 99, made by a newer linkstream")
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := clickhouse.OpenClickStore(ctx, clickhouse.Config{DSN: engines.ClickHouse(t)})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got error %v", err)
		}
	})
}

func TestLock(t *testing.T) {
	db := openDB(t, engines.ClickHouse(t))
	testkit.Must(t, clickhouse.Lock(t.Context(), db, time.Hour))
	t.Run("is exclusive", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := clickhouse.Lock(ctx, db, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got error %v", err)
		}
	})
	t.Run("is taken from a holder that died", func(t *testing.T) {
		testkit.Must(t, clickhouse.Lock(t.Context(), db, time.Second))
	})
}

func TestOpenWithoutServer(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"clickhouse", "http"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			storetest.TestUnreachable(t, func(t *testing.T, addr string) error {
				cfg := clickhouse.Config{DSN: scheme + "://user:s3cret@" + addr + "/clicks"}
				_, err := clickhouse.OpenClickStore(t.Context(), cfg)
				if err != nil && strings.Contains(err.Error(), "s3cret") {
					t.Errorf("the password is in the error %q", err)
				}
				return err
			}, `open database "clicks" at [127.0.0.1`)
		})
	}
}

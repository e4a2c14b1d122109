package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path"
	"runtime"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
)

var engines enginetest.Engines

func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }

func TestEachTestHasAnEmptyDatabase(t *testing.T) {
	databases := []struct {
		name   string
		url    func(testing.TB) string
		exec   func(ctx context.Context, url, sql string) error
		create string // fails where the table exists
	}{
		{"postgres", engines.Postgres, execPostgres, "CREATE TABLE clicks (n int)"},
		{"clickhouse", engines.ClickHouse, execClickHouse, "CREATE TABLE clicks (n UInt8) ENGINE Memory"},
		{"clickhouse by HTTP", engines.ClickHouseHTTP, execClickHouse, "CREATE TABLE clicks (n UInt8) ENGINE Memory"},
	}
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			first, second := d.url(t), d.url(t)
			for _, each := range []string{first, second} {
				if err := d.exec(t.Context(), each, d.create); err != nil {
					t.Error(err)
				}
			}
			var dropped string
			t.Run("test with a database", func(t *testing.T) { dropped = d.url(t) })
			u, err := url.Parse(dropped)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.exec(t.Context(), first, "DROP DATABASE "+path.Base(u.Path)); err == nil {
				t.Errorf("the database of a test that has ended still exists: %s", dropped)
			}
		})
	}
}

func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short skips every test that needs an engine")
	}
}

func execPostgres(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

func execClickHouse(ctx context.Context, url, sql string) error {
	options, err := clickhouse.ParseDSN(url)
	if err != nil {
		return err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return err
	}
	return errors.Join(conn.Exec(ctx, sql), conn.Close())
}

func TestTestsShareOneEngine(t *testing.T) {
	first, second := engines.Kafka(t), engines.Kafka(t)
	if first != second {
		t.Errorf("got brokers at %s and %s", first, second)
	}
	conn, err := net.Dial("tcp", first)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestOwnEngineEndsWithItsTest(t *testing.T) {
	skipIfShort(t)
	var e *testengines.Engine
	t.Run("test with an engine", func(t *testing.T) {
		t.Setenv(testengines.PostgresEnv, "postgres://127.0.0.1:1/nobody") // it is not used
		e = enginetest.Own(t, testengines.StartPostgres)
		if err := execPostgres(t.Context(), e.Addr, "SELECT 1"); err != nil {
			t.Error(err)
		}
	})
	if err := execPostgres(t.Context(), e.Addr, "SELECT 1"); err == nil {
		t.Errorf("%v still answers", e)
	}
}

func TestTestWithoutItsEngine(t *testing.T) {
	skipIfShort(t)
	missing := func(context.Context, string, *slog.Logger) (*testengines.Engine, error) {
		return nil, errors.New("no engine")
	}
	for value, want := range map[string]string{"": "skipped", "1": "failed"} {
		t.Run(fmt.Sprintf("is %s if %s is %q", want, testengines.RequireEnv, value), func(t *testing.T) {
			t.Setenv(testengines.RequireEnv, value)
			outcome := &outcome{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				enginetest.Own(outcome, missing)
				outcome.is = "not ended"
			}()
			<-done
			if outcome.is != want {
				t.Errorf("the test is %s, want %s", outcome.is, want)
			}
		})
	}
}

// outcome is a test that records how it ended and does not report it.
type outcome struct {
	testing.TB
	is string
}

func (o *outcome) Fatal(...any) { o.end("failed") }
func (o *outcome) Skip(...any)  { o.end("skipped") }

func (o *outcome) end(is string) {
	o.is = is
	runtime.Goexit()
}

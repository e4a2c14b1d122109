package testengines_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/deploy/tools/engines/testengines"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	testEngine(t, testengines.StartPostgres, postgresStore{})
}

func testTLS(t *testing.T, e *testengines.Engine) {
	verified := &testengines.Engine{Addr: strings.Replace(e.Addr, "disable", "verify-full&sslrootcert="+url.QueryEscape(e.CertFile), 1)}
	err := withPostgres(t.Context(), verified, func(conn *pgx.Conn) (err error) {
		var secure bool
		err = conn.QueryRow(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&secure)
		if err == nil && !secure {
			t.Error("the connection does not use TLS")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestErrorOfStartHoldsTheOutputOfTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := begin(t, testengines.StartPostgres, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data/PG_VERSION"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := testengines.StartPostgres(t.Context(), dir, discard)
	if err == nil {
		t.Fatalf("got %v", e)
	}
	if !strings.Contains(err.Error(), "PostgreSQL version 1") {
		t.Errorf("got %v", err)
	}
}

type postgresStore struct{}

func (postgresStore) write(ctx context.Context, e *testengines.Engine, value string) error {
	return withPostgres(ctx, e, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS kept (value text)")
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "INSERT INTO kept VALUES ($1)", value)
		return err
	})
}

func (postgresStore) read(ctx context.Context, e *testengines.Engine) (values []string, err error) {
	err = withPostgres(ctx, e, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT array_agg(value ORDER BY value) FROM kept").Scan(&values)
	})
	return values, err
}

func withPostgres(ctx context.Context, e *testengines.Engine, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, e.Addr)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return f(conn)
}

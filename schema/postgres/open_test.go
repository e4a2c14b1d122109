package postgres_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/deploy/testengines"
	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema"
	"linkstream/schema/postgres"
	"linkstream/schema/testkit"
)

// promptly is how soon an error is due where nothing answers.
const promptly = 8 * time.Second

func TestOpen(t *testing.T) {
	t.Parallel()
	t.Run("migrates once, however many nodes open an empty database", func(t *testing.T) {
		dsn := engines.Postgres(t)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				links, err := postgres.Open(t.Context(), dsn)
				if err != nil {
					t.Error(err)
					return
				}
				links.Close()
			})
		}
		group.Wait()
		var versions, twice int
		row := openRaw(t, dsn).QueryRow(t.Context(), `SELECT count(DISTINCT version_id), count(*) - count(DISTINCT version_id)
			FROM goose_db_version WHERE version_id > 0`)
		if err := row.Scan(&versions, &twice); err != nil || versions == 0 || twice != 0 {
			t.Fatalf("%d versions were applied, %d more than once, error %v", versions, twice, err)
		}
	})
	t.Run("makes do with one connection", func(t *testing.T) {
		openLinks(t, with(t, engines.Postgres(t), "pool_max_conns", "1"))
	})
	t.Run("refuses a database of a newer program", func(t *testing.T) {
		dsn := engines.Postgres(t)
		openLinks(t, dsn)
		exec(t, openRaw(t, dsn), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)`)
		_, err := postgres.Open(t.Context(), dsn)
		wantError(t, err, schema.CodeInternal, "version 99, made by a newer linkstream")
	})
	t.Run("refuses a DSN that cannot be read, and keeps its password", func(t *testing.T) {
		_, err := postgres.Open(t.Context(), "postgres://user:s3cret@127.0.0.1:port/database")
		wantError(t, err, schema.CodeInternal, "Postgres DSN")
	})
	t.Run("gives up with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := postgres.Open(ctx, engines.Postgres(t)); !errors.Is(err, context.Canceled) {
			t.Fatalf("got error %v", err)
		}
	})
}

func TestOpenWithoutServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	dsn := "postgres://user:s3cret@" + listener.Addr().String() + "/database?sslmode=disable"
	open := func(t *testing.T) {
		begin := time.Now()
		_, err := postgres.Open(t.Context(), dsn)
		wantError(t, err, schema.CodeUnavailable, `open database "database" at 127.0.0.1`)
		if took := time.Since(begin); took > promptly {
			t.Fatalf("that took %v", took)
		}
	}
	// The kernel accepts connections, and nobody reads them.
	t.Run("one that does not answer is unavailable", open)
	testkit.Must(t, listener.Close())
	t.Run("one that is not there is unavailable", open)
}

func TestOpenOverTLS(t *testing.T) {
	engine := enginetest.Own(t, testengines.StartPostgres)
	ours, _ := enginetest.Certificate(t)
	secure := func(authority string) string {
		return with(t, with(t, engine.Addr, "sslmode", "verify-full"), "sslrootcert", authority)
	}
	t.Run("opens a server whose certificate is from the authority", func(t *testing.T) {
		links := openLinks(t, secure(engine.CertFile))
		if _, err := links.Link(t.Context(), 0, "abc"); schema.ErrorCode(err) != schema.CodeNotFound {
			t.Errorf("got error %v", err)
		}
		var plain int
		row := openRaw(t, secure(engine.CertFile)).QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_ssl
			JOIN pg_stat_activity USING (pid) WHERE backend_type = 'client backend' AND NOT ssl`)
		if err := row.Scan(&plain); err != nil || plain != 0 {
			t.Errorf("%d connections are not secure, error %v", plain, err)
		}
	})
	t.Run("refuses one of another authority, and says so", func(t *testing.T) {
		_, err := postgres.Open(t.Context(), secure(ours))
		wantError(t, err, schema.CodeUnavailable, "certificate signed by unknown authority")
	})
}

// wantError requires an error with a code and a text, and without the password s3cret.
func wantError(t *testing.T, err error, code schema.Code, text string) {
	t.Helper()
	testkit.WantError(t, err, code, text)
	if strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("the password is in the error %q", err)
	}
}

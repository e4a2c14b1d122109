//go:build engines

package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	t.Run("several processes migrate an empty database once", func(t *testing.T) {
		dsn := engines.Postgres(t)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				links, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
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
	t.Run("one connection is enough", func(t *testing.T) {
		openLinks(t, withParameter(t, engines.Postgres(t), "pool_max_conns", "1"))
	})
	t.Run("rejects a database of a newer program", func(t *testing.T) {
		dsn := engines.Postgres(t)
		openLinks(t, dsn)
		exec(t, openRaw(t, dsn), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)`)
		_, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
		testkit.WantError(t, err, schema.CodeInternal, "version 99, made by a newer linkstream")
	})
	t.Run("rejects a malformed DSN without showing its password", func(t *testing.T) {
		_, err := postgres.Open(t.Context(), postgres.Config{DSN: "postgres://user:s3cret@127.0.0.1:port/database"})
		testkit.WantError(t, err, schema.CodeInternal, "Postgres DSN")
		wantNoPassword(t, err)
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := postgres.Open(ctx, postgres.Config{DSN: engines.Postgres(t)}); !errors.Is(err, context.Canceled) {
			t.Fatalf("got error %v", err)
		}
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	links, err := postgres.New(t.Context(), postgres.Config{DSN: engines.Postgres(t)})
	testkit.Must(t, err)
	defer testkit.Close(t, links)
	_, err = schema.FindLink(t.Context(), links, 0, "abc")
	testkit.WantCode(t, err, schema.CodeUnavailable)
	testkit.Must(t, links.Migrate(t.Context()))
	_, err = schema.FindLink(t.Context(), links, 0, "abc")
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func TestOpenWithoutServer(t *testing.T) {
	t.Parallel()
	storetest.TestUnreachable(t, func(t *testing.T, addr string) error {
		_, err := postgres.Open(t.Context(),
			postgres.Config{DSN: "postgres://user:s3cret@" + addr + "/database?sslmode=disable"})
		wantNoPassword(t, err)
		return err
	}, `open database "database" at 127.0.0.1`)
}

func TestOpenOverTLS(t *testing.T) {
	engine := enginetest.Own(t, testengines.StartPostgres)
	ours, _ := enginetest.Certificate(t)
	secure := func(authority string) string {
		return withParameter(t, withParameter(t, engine.Addr, "sslmode", "verify-full"), "sslrootcert", authority)
	}
	t.Run("trusts a server whose certificate is from the authority", func(t *testing.T) {
		links := openLinks(t, secure(engine.CertFile))
		if _, err := schema.FindLink(t.Context(), links, 0, "abc"); schema.ErrorCode(err) != schema.CodeNotFound {
			t.Errorf("got error %v", err)
		}
		var plain int
		row := openRaw(t, secure(engine.CertFile)).QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_ssl
			JOIN pg_stat_activity USING (pid) WHERE backend_type = 'client backend' AND NOT ssl`)
		if err := row.Scan(&plain); err != nil || plain != 0 {
			t.Errorf("%d connections without TLS, error %v", plain, err)
		}
	})
	t.Run("rejects the certificate of another authority, and says so", func(t *testing.T) {
		_, err := postgres.Open(t.Context(), postgres.Config{DSN: secure(ours)})
		testkit.WantError(t, err, schema.CodeUnavailable, "certificate signed by unknown authority")
	})
}

// wantNoPassword requires that the password s3cret is not in the error.
func wantNoPassword(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the password is in the error %q", err)
	}
}

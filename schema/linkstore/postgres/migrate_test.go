//go:build engines

package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// The SHA-256 of released migrations.
var released = map[string]string{"00001_links.sql": "1116a0ceae1a9f670b651c1af929b285980163adac4f4dbddf0e96cfc1b7125c"}

func TestMigrations(t *testing.T) {
	t.Parallel()
	storetest.TestMigrations(t, postgres.Migrations(), released, func(t *testing.T, from int64) []string {
		dsn := engines.Postgres(t)
		testkit.Must(t, postgres.MigrateTo(t.Context(), dsn, from))
		openLinks(t, dsn)
		return catalogue(t, openRaw(t, dsn))
	})
}

// catalogue returns the columns, indexes, constraints and triggers of all tables, how the tables are stored, and the
// functions.
func catalogue(t *testing.T, raw *pgx.Conn) []string {
	t.Helper()
	rows, err := raw.Query(t.Context(), `
		SELECT concat_ws(' ', 'column', table_name, ordinal_position, column_name, data_type, is_nullable, column_default,
			collation_name, is_identity, identity_generation)
		FROM information_schema.columns WHERE table_schema = current_schema()
		UNION ALL
		SELECT concat_ws(' ', 'index', indexdef) FROM pg_indexes WHERE schemaname = current_schema()
		UNION ALL
		SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
		FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
		UNION ALL
		SELECT concat_ws(' ', 'relation', relname, relkind, relpersistence, reloptions)
		FROM pg_class WHERE relnamespace = current_schema()::regnamespace
		UNION ALL
		SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(pg_trigger.oid))
		FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid
		WHERE relnamespace = current_schema()::regnamespace AND NOT tgisinternal
		UNION ALL
		SELECT concat_ws(' ', 'function', pg_get_functiondef(oid))
		FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
		ORDER BY 1`)
	testkit.Must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	testkit.Must(t, err)
	return all
}

// TestMigrationInUse migrates while a transaction uses a table for long. Others use the table meanwhile.
func TestMigrationInUse(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	testkit.Must(t, postgres.MigrateTo(t.Context(), dsn, 1))
	long, others := openRaw(t, dsn), openRaw(t, dsn)
	exec(t, long, "BEGIN; SELECT FROM links")
	migrated := make(chan error)
	go func() {
		links, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
		if err == nil {
			err = links.Close()
		}
		migrated <- err
	}()
	awaitWaiter(t, others, long)
	exec(t, others, "SET statement_timeout = '500ms'")
	for began := time.Now(); time.Since(began) < time.Second; {
		exec(t, others, "SELECT FROM links")
	}
	exec(t, long, "COMMIT")
	testkit.Must(t, <-migrated)
}

func TestOtherSchemas(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	openLinks(t, dsn)
	raw, cfg := openRaw(t, dsn), postgres.DefaultConfig()
	cfg.DSN = dsn
	open := func() error {
		store, err := postgres.OpenCurrent(t.Context(), cfg)
		if err == nil {
			err = store.Close()
		}
		return err
	}
	storetest.TestOtherSchemas(t, open,
		func(t *testing.T, statement string) { _, err := raw.Exec(t.Context(), statement); testkit.Must(t, err) },
		func(t *testing.T) (all []int64) {
			const versions = "SELECT array_agg(version_id ORDER BY version_id) FROM goose_db_version"
			testkit.Must(t, raw.QueryRow(t.Context(), versions).Scan(&all))
			return all
		})
}

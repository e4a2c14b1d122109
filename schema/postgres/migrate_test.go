package postgres_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/schema/postgres"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestMigrations(t *testing.T) {
	t.Parallel()
	files := os.DirFS("migrations")
	storetest.TestFrozenMigrations(t, files, map[string]string{
		"00001_links.sql":        "890b4a5655f5b085c2294825a60debededf4e81b568aeb40fb8aa9830b23a2c8",
		"00002_rate.sql":         "ed1ed820205ef002dd8b8c796abb16587430855ba7ac169a6dd57dca9851d2f4",
		"00003_dashboard.sql":    "fcdcdc603f8c784f63e51c3cf0cc2468af2fcf5219664e53c03127e2b20dff8f",
		"00004_takedown.sql":     "8474e3e5d4c752dc15d0e9d91a301cf57428fb4ab286cc3dfd8c23f7894b4c96",
		"00005_manage.sql":       "cee2cdbd9a8b7b471fbeb6c4b4848e230ce96e8e4b602b8b2b41efa5c3063abe",
		"00006_certificates.sql": "34c2079c4623ef1d076a5fb3d834b057291a1a5514effd27bda67966a9a671f8",
		"00007_uploads.sql":      "0ab794a7433a48c029bdc47804072a3c505ec780ddb2347cd62e2420bcb85b8a",
		"00008_idempotency.sql":  "fb07b132814a8e52f47c0616ba6ab9917e53fecc6be7854f941402fe9502dd75",
		"00009_insert.sql":       "009fd39182c0bf1452a91d96c091627d07bbd61a74f7f8e94487b067f9217af8",
	})
	storetest.TestUpgrades(t, files, func(t *testing.T, from int64) []string {
		dsn := engines.Postgres(t)
		testkit.Must(t, postgres.MigrateTo(t.Context(), dsn, from))
		openLinks(t, dsn)
		return catalogue(t, openRaw(t, dsn))
	})
}

// catalogue returns the columns, indexes and constraints of all tables, and how the tables are stored.
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
		ORDER BY 1`)
	testkit.Must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	testkit.Must(t, err)
	return all
}

// TestUpgradedLinks opens a database whose rows were written before sessions came.
func TestUpgradedLinks(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	testkit.Must(t, postgres.MigrateTo(t.Context(), dsn, 2))
	raw := openRaw(t, dsn)
	for _, statement := range []string{
		`INSERT INTO accounts (email, password_hash, suspended, link_count, created_at)
			VALUES ('a@example.org', 'hash', false, 1, now())`,
		`INSERT INTO tokens (account_id, name, prefix, digest, created_at)
			VALUES (1, 'name', 'ls_', decode(repeat('00', 32), 'hex'), now())`,
		`INSERT INTO domains (account_id, host, challenge, created_at) VALUES (1, 'go.example.org', '', now())`,
		`INSERT INTO domains (account_id, host, challenge, created_at, verified_at)
			VALUES (1, 'verified.example.org', '', now(), now())`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			VALUES (1, 1, 'hash', 'https://example.org/', true, 1, now())`,
	} {
		exec(t, raw, statement)
	}
	storetest.TestUpgradedLinks(t, openLinks(t, dsn))
}

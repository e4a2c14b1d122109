//go:build engines

package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// scans are the tables that statements scan.
var scans = map[string]string{
	"CreateFirstAccount: Seq Scan on accounts":      "one row",
	"DeleteSharedValues: Seq Scan on shared_values": "few rows",
	"PutImport: Seq Scan on imports":                "old rows are deleted",
	"QueueClicks: Seq Scan on heard_positions":      "a row per partition",
	"QueuedPosition: Seq Scan on heard_positions":   "a row per partition",
	"SharedValues: Seq Scan on shared_values":       "few rows",
	"TakeChanges: Seq Scan on outbox":               "one row",
}

// testPlans checks that every statement finds its rows by an index, in a plan for any arguments.
func testPlans(t *testing.T, texts *storetest.Texts) {
	dsn := engines.Postgres(t)
	openLinks(t, dsn)
	raw := openRaw(t, dsn)
	fill(t, raw)
	exec(t, raw, "SET plan_cache_mode = force_generic_plan")
	plans := texts.Explain(func(text string) []string { return explain(t, raw, postgres.Expand(text)) })
	plans.WantNone(t, func(_ *storetest.Plan, step string) bool { return strings.Contains(step, "Seq Scan") }, scans)
	const byHash = "Index Scan using links_domain_id_hash_key on links"
	plans.Want(t, "Links", "a.link_count", "Index Scan using links_account_id_ordinal_key on links l")
	plans.Want(t, "Links", "a.link_count", "(account_id = $1) AND (ordinal > ((a.link_count")
	plans.Want(t, "Links", "LIKE $3", "Cond: ((account_id = $1) AND (")
	plans.Want(t, "LinkIDs", "(l.folded_url IS NOT NULL OR", "using links_folded on links l")
	plans.Want(t, "LinkIDs", "l.updated_at = $3", "Index Scan using links_in_trash on links l")
	const byOrdinal = "using links_account_id_ordinal_key on links l"
	plans.Want(t, "LinksAfter", "l.ordinal > CAST($2", byOrdinal)
	plans.Want(t, "LinksAfter", "l.ordinal < CAST($2 AS bigint) ORDER", byOrdinal)
	plans.Want(t, "LinksAfter", "l.updated_at <= $", "using links_in_trash on links l")
	plans.Want(t, "ChangedLinks", "d.id IS NOT NULL) ORDER BY l.number", "using links_numbered on links l")
	plans.Want(t, "ChangedLinks", "ELSE false END ORDER", byOrdinal)
	plans.Want(t, "NumberChanges", "ORDER BY updated_at LIMIT", "using links_to_number on links")
	plans.Want(t, "LinksByHash", "", byHash)
	plans.Want(t, "EdgeLinks", "", byHash)
	plans.Want(t, "EdgeLinks", "", "Index Only Scan using links_domain_id_hash_key on links b")
	const byExternalID = "using links_by_external_id on links l"
	plans.Want(t, "CreateLinks", "l.external_id = k.hash", byExternalID)
	plans.Want(t, "ExternalLink", "", byExternalID)
	plans.Want(t, "UpdateLink", "external_id = NULL", byExternalID)
	plans.Want(t, "ReusableLink", "link_targets", "using link_targets_pkey on link_targets")
	plans.Want(t, "ReusableLink", "l.ordinal", "using links_account_id_ordinal_key on links l")
	plans.Want(t, "CreateLinks", "k.place", byHash)
	plans.Want(t, "OwnedLinks", "", byHash)
	plans.Want(t, "RestoreLink", "hash = $2", byHash)
	plans.Want(t, "RestoreLink", "UPDATE links", "Index Scan using links_pkey on links")
	plans.Want(t, "TagCounts", "", "Index Only Scan using links_by_tags")
	plans.Want(t, "CountAttempts", "DELETE", "Index Scan using attempts_pkey")
	plans.Want(t, "CountAttempts", "DELETE", "Index Cond: (begins_at < $1)")
	plans.Want(t, "CountAttempts", "INSERT", "Conflict Arbiter Indexes: attempts_pkey")
	plans.Want(t, "Deliveries", "", "deliveries_shown")
	plans.Want(t, "ResendDelivery", "SET status", "deliveries_finished")
	plans.Want(t, "NoteDelivery", "OFFSET", "deliveries_finished")
	plans.Want(t, "QueuedMarks", "", "Index Scan using heard_lanes_pkey")
	plans.Want(t, "ClickHookAccounts", "", "webhooks_of_clicks")
	plans.Want(t, "QueueClicks", "clicks_since", "webhooks_of_clicks")
}

// fill inserts rows into all tables, and updates the planner's statistics.
func fill(t testing.TB, raw *pgx.Conn) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO accounts (email, password_hash, suspended, created_at)
			SELECT i || '@example.org', '', false, now() FROM generate_series(1, 10000) i`,
		`INSERT INTO tokens (account_id, name, prefix, digest, created_at)
			SELECT i, '', '', decode(to_hex(i), 'escape'), now() FROM generate_series(1, 10000) i`,
		`INSERT INTO rate_windows SELECT id, now(), 1 FROM tokens`,
		`INSERT INTO domains (account_id, host, challenge, created_at, verified_at)
			SELECT i, i || '.example.org', '', now(), now() FROM generate_series(1, 10000) i`,
		`UPDATE domains SET check_at = now() + (id - 100) * interval '1 minute'`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			SELECT 1, 0, 'link-' || i, 'https://example.org/a/path?n=' || i, true, i, now() FROM generate_series(1, 10000) i`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			SELECT 2 + i % 5000, 0, 'other-' || i, '', true, i, now() FROM generate_series(1, 10000) i`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at, updated_at)
			SELECT 2 + i % 5000, 0, 'gone-' || i, CASE i % 20 WHEN 0 THEN 'https://example.org/' ELSE '' END, false, -i,
				now(), now() FROM generate_series(1, 10000) i`,
		`UPDATE links SET version = 2, numbered = CASE WHEN id % 100 > 0 THEN 2 ELSE 1 END, number = id WHERE account_id > 1`,
		`UPDATE accounts SET link_count = 10000 WHERE id = 1`,
		`INSERT INTO link_targets SELECT account_id, substr(url, length(url) - 23), abs(ordinal) FROM links
			ON CONFLICT DO NOTHING`,
		`INSERT INTO link_gaps SELECT i % 500, i, 1 FROM generate_series(1, 10000) i WHERE i % 500 > 0`,
		`INSERT INTO sessions (account_id, digest, user_agent, created_at, seen_at, expires_at)
			SELECT i, decode(to_hex(i), 'escape'), '', now(), now(), now() FROM generate_series(1, 10000) i`,
		`INSERT INTO attempts (begins_at, key, attempts)
			SELECT now() - i * interval '1 minute', decode(to_hex(i), 'escape'), 1 FROM generate_series(1, 10000) i`,
		`INSERT INTO certificate_files SELECT 'file/' || i, '', now() FROM generate_series(1, 10000) i`,
		`INSERT INTO certificate_locks SELECT 'lock-' || i, '', now() FROM generate_series(1, 10000) i`,
		`INSERT INTO certificate_states SELECT i || '.example', now(), now(), '' FROM generate_series(1, 10000) i`,
		`INSERT INTO idempotency_keys
			SELECT 1 + i % 100, decode(to_hex(i), 'escape'), i, '', '', now() - i * interval '1 minute'
			FROM generate_series(1, 10000) i`,
		`INSERT INTO imports SELECT id, '', '', '', false, now() FROM accounts`,
		`INSERT INTO shared_values SELECT 'value-' || i, '' FROM generate_series(1, 10000) i`,
		`INSERT INTO lease_holders SELECT decode(to_hex(i), 'escape'), false FROM generate_series(1, 10000) i`,
		`INSERT INTO leases SELECT i, decode(to_hex(i % 1000), 'escape'), 1, 1, 1 FROM generate_series(1, 10000) i`,
		`INSERT INTO outbox (changes) SELECT 'link/0/' || i FROM generate_series(1, 10000) i`,
		`INSERT INTO shares (account_id, digest, link_id, hash, tag, password_hash, hide_targets, created_at)
			SELECT i, decode(to_hex(i), 'escape'), 0, '', '', '', false, now() FROM generate_series(1, 10000) i`,
		`INSERT INTO webhooks (account_id, url, events, domain_id, hash, tag, people_only, active, secret, created_at,
				updated_at, clicks_since, next_at, waiting)
			SELECT i, '', CASE i % 100 WHEN 0 THEN 'link.clicked' ELSE '' END, 0, '', '', false, true, '', now(), now(), now(),
				now() + i * interval '1 minute', i % 2
			FROM generate_series(1, 10000) i`,
		`INSERT INTO webhook_deliveries (webhook_id, message, event, at, data, status, clicks)
			SELECT 1 + i % 2 * (i % 1000), 'message-' || i, '', now(), '',
				CASE WHEN i <= 200 THEN 'delivered' ELSE 'waiting' END, (i > 200)::int FROM generate_series(1, 10000) i`,
		`INSERT INTO heard_lanes SELECT decode(to_hex(i % 1000), 'escape'), i, 1 FROM generate_series(1, 10000) i`,
		`INSERT INTO heard_positions SELECT i, 1, 1, 1, '', 1, 1 FROM generate_series(1, 64) i`,
		`VACUUM ANALYZE`,
	} {
		exec(t, raw, statement)
	}
	var empty []string
	testkit.Must(t, raw.QueryRow(t.Context(), `SELECT coalesce(array_agg(relname::text), '{}') FROM pg_class
		WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND reltuples < 5000
			AND relname NOT IN ('goose_db_version', 'heard_positions')`).Scan(&empty))
	if len(empty) > 0 {
		t.Fatalf("tables %q have few rows", empty)
	}
}

// explain returns the plan of a statement for any arguments.
func explain(t *testing.T, raw *pgx.Conn, text string) (steps []string) {
	t.Helper()
	if strings.HasPrefix(text, "LOCK TABLE") { // it has no plan
		return nil
	}
	exec(t, raw, "PREPARE explained AS "+text)
	defer exec(t, raw, "DEALLOCATE explained")
	var parameters int
	testkit.Must(t, raw.QueryRow(t.Context(),
		"SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'explained'").Scan(&parameters))
	args := ""
	if parameters > 0 {
		args = "(NULL" + strings.Repeat(", NULL", parameters-1) + ")"
	}
	rows, err := raw.Query(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE explained"+args)
	testkit.Must(t, err)
	steps, err = pgx.CollectRows(rows, pgx.RowTo[string])
	testkit.Must(t, err)
	return steps
}

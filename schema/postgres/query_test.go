package postgres_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/schema/postgres"
	"linkstream/schema/testkit"
)

// queryArgs are literals for the parameters of postgres.Queries.
var queryArgs = map[string]string{
	"links by hash": "'{0, 7}', '{link-7, link-8}'", "destinations": "'{0, 7}', '{link-7, link-8}'", "owned links": "1, '{link-7, link-8}'", "page of links": "1, 400, 20",
	"token": `'\x07'`, "domain": "7", "domains of a host": "'7.example.org'", "verified domain": "'7.example.org'", "verified domains": "7, 100", "verified hosts": "'{7.example.org, 8.example.org}'",
	"certificate file": "'a/b'", "certificate files": "'a/', 'a0'", "deleted certificate files": "'a', 'a/', 'a0'",
	"certificate lock": "'name', 'holder', interval '1 minute'", "certificate unlock": "'name', 'holder'",
	"certificate state": "'a.example'", "new certificate state": "'a.example', NULL, now(), ''",
	"domains": "7", "domains to check": "now(), now() + interval '1 hour', 16", "lost host": "7, now()",
	"won host": "7, now(), now()", "deleted domain": "7", "new link": "7, 7, 'new', 'https://example.org/', true, now(), '', '', NULL, '', false, '', ''",
	"new links": `'{7, 8}', '{0, 7}', '{new, new}', '{https://example.org/, https://example.org/}', '{t, t}',
		'{2026-11-21, 2026-11-21}', '{a, b}', '{a, b}', '{NULL, 2026-11-21}', '{a, b}', '{t, f}', '{a, b}', '{a, b}'`,
	"recorded call": `7, '\x07', now()`, "repeated call": `7, '\x07', now()`, "forgotten call": `7, '\x07', now()`, "forgotten calls": "now() - interval '1 day', 16",
	"new call":       `7, '\x0a', now(), '', '', 100000, now()`,
	"locked domains": "'{7, 8}'", "locked account": "7", "taken hashes": "1, '{0, 0}', '{link-7, new}'", "rests of links": "1, '{0, 0}', '{gone, new}'",
	"inserted links": `7, '{7}', 2, now(), '{1, 2}', '{new, new}', '{https://example.org/, https://example.org/}', '{0, 7}', NULL, NULL,
		'{a, b}', '{a, b}', '{NULL, 2026-11-21}', '{a, b}', '{t, f}', NULL, NULL, NULL, NULL`,
	"links after": "1, 400, 20", "gaps of links": "1", "range of links": "1, 400, 380, 0, 20", "deleted link": "1, '{7}', now(), 1024",
	"unchanged link": "7", "link password": "7",
	"changed link":   "7, NULL, 'title', NULL, true, false, NULL, NULL, NULL, now(), true, 'https://example.org/', '', '', '', false, NULL, NULL, '', NULL",
	"link made anew": "1, 0, 'gone', 'https://example.org/', true, now(), '', '', NULL, '', false, '', ''",
	"links by ID":    "1, '{7, 8}'", "link that was made anew": "1, 'link-7', NULL", "counts of tags": "1, 'sale', 100", "tagged links": "1, 400, 20", "tokens": "7", "use of tokens": "'{7, 8}', '{2026-11-21, 2026-11-21}'",
	"session": `'\x07', now()`, "sessions": "7, now()", "attempts": `'{2026-11-21, 2026-11-21}', ARRAY['\x07', '\x08']::bytea[], '{1, 2}', now() - interval '1 day', 18`,
	"search": "7, 0, 'link', 0, 20", "deliveries": "1, 100", "delivery to send again": "1, 'message-5'", "old deliveries": "1, 100",
}

func TestQueryPlans(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	openLinks(t, dsn)
	raw := openRaw(t, dsn)
	fill(t, raw, 10_000)
	exec(t, raw, `INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
		SELECT 2 + i % 5000, 0, 'other-' || i, '', true, i, now() FROM generate_series(1, 10000) i`)
	exec(t, raw, `INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at) VALUES (1, 0, 'gone', '', false, -1, now())`)
	exec(t, raw, `INSERT INTO link_gaps SELECT i % 500, i, 1 FROM generate_series(1, 10000) i WHERE i % 500 > 0`)
	exec(t, raw, `INSERT INTO webhooks (account_id, url, events, domain_id, hash, tag, people_only, active, secret, created_at, updated_at, clicks_since, next_at)
		SELECT 1, '', '', 0, '', '', false, true, '', now(), now(), now(), now() FROM generate_series(1, 1000)`)
	exec(t, raw, `INSERT INTO webhook_deliveries (webhook_id, message, event, at, data, status, clicks)
		SELECT 1 + i % 2 * (i % 1000), 'message-' || i, '', now(), '', CASE WHEN i <= 200 THEN 'delivered' ELSE 'waiting' END, (i > 200)::int
		FROM generate_series(1, 10000) i`)
	exec(t, raw, "ANALYZE links, link_gaps, webhooks, webhook_deliveries")
	exec(t, raw, "SET plan_cache_mode = force_generic_plan") // a plan for any arguments
	for name, query := range postgres.Queries {
		t.Run(name+" is found by an index", func(t *testing.T) {
			plan := explain(t, raw, name, query)
			if strings.Contains(plan, "Seq Scan") {
				t.Fatalf("a table is scanned:\n%s", plan)
			}
		})
	}
	t.Run("deliveries are found beside many that wait", func(t *testing.T) {
		for name, index := range map[string]string{"deliveries": "shown", "delivery to send again": "finished", "old deliveries": "finished"} {
			if plan := explain(t, raw, name, postgres.Queries[name]); !strings.Contains(plan, "deliveries_"+index) {
				t.Errorf("%s are not found by the index:\n%s", name, plan)
			}
		}
	})
	t.Run("tags are counted in an index that has them", func(t *testing.T) {
		plan := explain(t, raw, "counts of tags", postgres.Queries["counts of tags"])
		if !strings.Contains(plan, "Index Only Scan using links_by_tags") {
			t.Fatalf("links are read:\n%s", plan)
		}
	})
	t.Run("a search reads only the account's links", func(t *testing.T) {
		plan := explain(t, raw, "search", postgres.Queries["search"])
		if !regexp.MustCompile(`on links .*\n(.*\n)?\s*(Recheck|Index) Cond: \(+account_id = \$1\)`).MatchString(plan) {
			t.Fatalf("links of other accounts are read:\n%s", plan)
		}
	})
	t.Run("a page of links is a range of an index, and only the page's rows are read", func(t *testing.T) {
		plan := explain(t, raw, "page of links", postgres.Queries["page of links"])
		ranged := regexp.MustCompile(`links_account_id_ordinal_key .*actual rows=20 .*\n` +
			`\s*Index Cond: \(.*account_id = .* AND \(ordinal > .*\) AND \(ordinal <= `)
		if !ranged.MatchString(plan) {
			t.Fatalf("the page is not a range of the index:\n%s", plan)
		}
	})
}

// fill inserts n rows into each table, with all links for account 1, and updates the planner's statistics.
func fill(t testing.TB, raw *pgx.Conn, n int) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO accounts (email, password_hash, suspended, created_at)
			SELECT i || '@example.org', '', false, now() FROM generate_series(1, %d) i`,
		`INSERT INTO tokens (account_id, name, prefix, digest, created_at)
			SELECT i, '', '', decode(to_hex(i), 'escape'), now() FROM generate_series(1, %d) i`,
		`INSERT INTO domains (account_id, host, challenge, created_at, verified_at)
			SELECT i, i || '.example.org', '', now(), now() FROM generate_series(1, %d) i`,
		`UPDATE domains SET check_at = now() + (id - 100) * interval '1 minute' WHERE id <= %d`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			SELECT 1, 0, 'link-' || i, 'https://example.org/a/path?n=' || i, true, i, now() FROM generate_series(1, %d) i`,
		`INSERT INTO sessions (account_id, digest, user_agent, created_at, seen_at, expires_at)
			SELECT i, decode(to_hex(i), 'escape'), '', now(), now(), now() FROM generate_series(1, %d) i`,
		`INSERT INTO attempts (begins_at, key, attempts)
			SELECT now() - i * interval '1 minute', decode(to_hex(i), 'escape'), 1 FROM generate_series(1, %d) i`,
		`INSERT INTO certificate_files SELECT 'file/' || i, '', now() FROM generate_series(1, %d) i`,
		`INSERT INTO certificate_locks SELECT 'lock-' || i, '', now() FROM generate_series(1, %d) i`,
		`INSERT INTO certificate_states SELECT i || '.example', now(), now(), '' FROM generate_series(1, %d) i`,
		`INSERT INTO idempotency_keys SELECT 1 + i %% 100, decode(to_hex(i), 'escape'), i, '', '', now() - i * interval '1 minute'
			FROM generate_series(1, %d) i`,
		`UPDATE accounts SET link_count = %d WHERE id = 1`,
	} {
		exec(t, raw, fmt.Sprintf(statement, n))
	}
	exec(t, raw, "VACUUM ANALYZE")
}

func explain(t *testing.T, raw *pgx.Conn, name, query string) (plan string) {
	t.Helper()
	statement := strings.ReplaceAll(name, " ", "_")
	exec(t, raw, "PREPARE "+statement+" AS "+query)
	defer exec(t, raw, "DEALLOCATE "+statement)
	exec(t, raw, "BEGIN") // rolled back, because some statements write
	defer exec(t, raw, "ROLLBACK")
	rows, err := raw.Query(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF) EXECUTE "+statement+"("+queryArgs[name]+")")
	testkit.Must(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	testkit.Must(t, err)
	return strings.Join(lines, "\n")
}

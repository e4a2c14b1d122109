package postgres_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/schema/postgres"
)

// queryArgs are literals for the parameters of postgres.Queries.
var queryArgs = map[string]string{
	"link by hash": "0, 'link-7'", "owned link": "1, 'link-7', NULL", "page of links": "1, 400, 20",
	"token": `'\x07'`, "domain": "7", "domains of a host": "'7.example.org'", "verified domain": "'7.example.org'",
}

func TestQueryPlans(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	openLinks(t, dsn)
	raw := openRaw(t, dsn)
	fill(t, raw, 10_000)
	exec(t, raw, "SET plan_cache_mode = force_generic_plan") // one that holds for any arguments
	for name, query := range postgres.Queries {
		t.Run(name+" is found by an index, however many rows there are", func(t *testing.T) {
			plan := explain(t, raw, name, query)
			if strings.Contains(plan, "Seq Scan") {
				t.Fatalf("a table is read in full:\n%s", plan)
			}
		})
	}
	t.Run("a page of links is one range of an index, of which the page's rows alone are read", func(t *testing.T) {
		plan := explain(t, raw, "page of links", postgres.Queries["page of links"])
		ranged := regexp.MustCompile(`links_account_id_ordinal_key .*actual rows=20 .*\n` +
			`\s*Index Cond: \(.*account_id = .* AND \(ordinal > .*\) AND \(ordinal <= `)
		if !ranged.MatchString(plan) {
			t.Fatalf("the page is not a range:\n%s", plan)
		}
	})
}

// fill gives each table n rows, all links to account 1, and the planner its statistics.
func fill(t testing.TB, raw *pgx.Conn, n int) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO accounts (email, password_hash, suspended, created_at)
			SELECT i || '@example.org', '', false, now() FROM generate_series(1, %d) i`,
		`INSERT INTO tokens (account_id, name, prefix, digest, created_at)
			SELECT i, '', '', decode(to_hex(i), 'escape'), now() FROM generate_series(1, %d) i`,
		`INSERT INTO domains (account_id, host, challenge, created_at, verified_at)
			SELECT i, i || '.example.org', '', now(), now() FROM generate_series(1, %d) i`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			SELECT 1, 0, 'link-' || i, 'https://example.org/a/path?n=' || i, true, i, now() FROM generate_series(1, %d) i`,
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
	rows, err := raw.Query(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF) EXECUTE "+statement+"("+queryArgs[name]+")")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

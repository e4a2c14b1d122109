package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"linkstream/schema"
	"linkstream/schema/postgres"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

const longURL = "https://example.org/a/path/of/some/length?with=a&few=parameters"

// linksToCreate returns a store with an account, and a pool with as many connections to the same database.
func linksToCreate(b *testing.B) (links *postgres.Store, raw *pgxpool.Pool, accountID int64) {
	b.Helper()
	dsn := engines.Postgres(b)
	links = openLinks(b, dsn)
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(b, links.CreateAccount(b.Context(), &owner))
	raw, err := pgxpool.New(b.Context(), dsn)
	testkit.Must(b, err)
	b.Cleanup(raw.Close)
	return links, raw, owner.ID
}

// insertBare inserts the row that CreateLink inserts, with an ordinal that does not depend on the account.
func insertBare(b *testing.B, raw *pgxpool.Pool, accountID, n int64) {
	var id int64
	err := raw.QueryRow(b.Context(), `
		INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
		VALUES ($1, 0, $2, $3, true, $4, $5) RETURNING id`,
		accountID, fmt.Sprintf("bare-%d", n), longURL, 1<<40+n, time.Now()).Scan(&id)
	testkit.Must(b, err)
}

func createLink(b *testing.B, links *postgres.Store, accountID, n int64) {
	link := schema.Link{AccountID: accountID, Hash: fmt.Sprintf("l-%d", n), URL: longURL, Active: true, CreatedAt: time.Now()}
	if err := links.CreateLink(b.Context(), &link); err != nil {
		b.Error(err)
	}
}

// BenchmarkCreateLink alternates with a bare INSERT of the same row, so that both use the disk under the same load.
func BenchmarkCreateLink(b *testing.B) {
	links, raw, accountID := linksToCreate(b)
	var created, bare time.Duration
	n := int64(0)
	for b.Loop() {
		n++
		begin := time.Now()
		createLink(b, links, accountID, n)
		middle := time.Now()
		insertBare(b, raw, accountID, n)
		created += middle.Sub(begin)
		bare += time.Since(middle)
	}
	b.ReportMetric(float64(created.Microseconds())/float64(n), "µs/CreateLink")
	b.ReportMetric(float64(bare.Microseconds())/float64(n), "µs/INSERT")
	b.ReportMetric(float64(created)/float64(bare), "ratio")
}

// BenchmarkCreateLinkParallel creates the links of one account, whose row each batch locks until its commit.
func BenchmarkCreateLinkParallel(b *testing.B) {
	links, raw, accountID := linksToCreate(b)
	var n atomic.Int64
	for name, insert := range map[string]func(n int64){
		"CreateLink": func(n int64) { createLink(b, links, accountID, n) },
		"INSERT":     func(n int64) { insertBare(b, raw, accountID, n) },
	} {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				var group errgroup.Group
				group.SetLimit(callers)
				for range b.N {
					group.Go(func() error {
						insert(n.Add(1))
						return nil
					})
				}
				testkit.Must(b, group.Wait())
			})
		}
	}
}

// insertManyBare inserts the rows that CreateLinks inserts, by one statement, with the checks of a bulk call: that the account
// exists, that each hash is free, and that ordinals have no gaps.
func insertManyBare(b *testing.B, raw *pgxpool.Pool, accountID int64, hashes, urls []string) {
	tag, err := raw.Exec(b.Context(), `
		WITH owner AS MATERIALIZED (SELECT link_count FROM accounts WHERE id = $1 FOR NO KEY UPDATE),
			counted AS (UPDATE accounts SET link_count = link_count + $5 WHERE id = $1)
		INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
		SELECT $1, 0, w.hash, w.url, true, owner.link_count + w.place, $4
		FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS w (hash, url, place), owner
		ON CONFLICT (domain_id, hash) DO NOTHING`, accountID, hashes, urls, time.Now(), len(hashes))
	testkit.Must(b, err)
	if int(tag.RowsAffected()) != len(hashes) {
		b.Fatalf("%d rows of %d are inserted", tag.RowsAffected(), len(hashes))
	}
}

// copyMany copies the rows without any checks but those of the table.
func copyMany(b *testing.B, raw *pgxpool.Pool, accountID, first int64, hashes, urls []string) {
	now := time.Now()
	n, err := raw.CopyFrom(b.Context(), pgx.Identifier{"links"},
		[]string{"account_id", "domain_id", "hash", "url", "active", "ordinal", "created_at"},
		pgx.CopyFromSlice(len(hashes), func(i int) ([]any, error) {
			return []any{accountID, int64(0), hashes[i], urls[i], true, first + int64(i), now}, nil
		}))
	testkit.Must(b, err)
	if int(n) != len(hashes) {
		b.Fatalf("%d rows of %d are copied", n, len(hashes))
	}
}

// BenchmarkCreateLinks alternates with a bare INSERT of as many rows with the same checks, and with a COPY, so that all use CPU and
// disk under the same load.
func BenchmarkCreateLinks(b *testing.B) {
	for _, size := range []int{10, 100, schema.MaxLinkBatch} {
		b.Run(fmt.Sprintf("links=%d", size), func(b *testing.B) {
			links, raw, accountID := linksToCreate(b)
			copied := schema.Account{Email: "copied@example.org", CreatedAt: time.Now()}
			testkit.Must(b, links.CreateAccount(b.Context(), &copied))
			var spent [3]time.Duration
			hashes, urls := make([]string, size), make([]string, size)
			n := int64(0)
			for b.Loop() {
				batch := &schema.LinkBatch{AccountID: accountID, NewHash: schema.NewHash, Links: make([]schema.Link, size)}
				for i := range size {
					batch.Links[i] = schema.Link{URL: longURL, Active: true, CreatedAt: time.Now()}
				}
				draw := func() {
					for i := range size {
						hashes[i], urls[i] = schema.NewHash(), longURL
					}
				}
				for i, create := range []func(){
					func() { testkit.Must(b, links.CreateLinks(b.Context(), batch)) },
					func() { draw(); insertManyBare(b, raw, accountID, hashes, urls) },
					func() { draw(); copyMany(b, raw, copied.ID, n*int64(size)+1, hashes, urls) },
				} {
					begin := time.Now()
					create()
					spent[i] += time.Since(begin)
				}
				n++
			}
			count := float64(n * int64(size))
			for i, name := range []string{"CreateLinks", "INSERT", "COPY"} {
				b.ReportMetric(count/spent[i].Seconds(), name+"/s")
			}
			b.ReportMetric(float64(spent[0])/float64(spent[1]), "ratio-to-INSERT")
			b.ReportMetric(float64(spent[0])/float64(spent[2]), "ratio-to-COPY")
		})
	}
}

func BenchmarkLinks(b *testing.B) {
	dsn := engines.Postgres(b)
	links := openLinks(b, dsn)
	fill(b, openRaw(b, dsn), storetest.TimedLinks)
	storetest.BenchmarkLinkStores(b, links, 1)
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

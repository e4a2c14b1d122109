package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

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

func BenchmarkLinks(b *testing.B) {
	dsn := engines.Postgres(b)
	links := openLinks(b, dsn)
	fill(b, openRaw(b, dsn), storetest.TimedLinks)
	storetest.BenchmarkLinkStores(b, links, 1)
}

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
	"linkstream/schema/testkit"
)

const longURL = "https://example.org/a/path/of/some/length?with=a&few=parameters"

// linksToCreate returns a store with an account, and a pool of as many connections to the same database.
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

// insertBare inserts the row that CreateLink inserts, with an ordinal that is known without asking.
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

// BenchmarkCreateLink takes turns with a bare INSERT of the same row, so that both meet the same disk.
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

// BenchmarkCreateLinkParallel has all links belong to one account, whose row a batch of them locks until its commit.
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

func BenchmarkLink(b *testing.B) {
	links, _ := linksOf(b, 100_000)
	var n atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			hash := fmt.Sprintf("link-%d", n.Add(7919)%100_000+1)
			_, err := links.Link(b.Context(), 0, hash)
			testkit.Must(b, err)
		}
	})
}

// BenchmarkLinks shows that any page costs the same.
func BenchmarkLinks(b *testing.B) {
	links, accountID := linksOf(b, 100_000)
	for _, page := range []int64{1, 100, 5000} {
		b.Run(fmt.Sprintf("page=%d", page), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				got, _, err := links.Links(b.Context(), accountID, page)
				if err != nil || len(got) != schema.PageSize {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

// BenchmarkSearchLinks looks through all of an account's links, of which the page it returns is a small part.
func BenchmarkSearchLinks(b *testing.B) {
	links, accountID := linksOf(b, 100_000)
	for query, want := range map[string]int64{"n=7777": 11, "link-": 100_000} {
		b.Run("found="+fmt.Sprint(want), func(b *testing.B) {
			for b.Loop() {
				if _, total, err := links.SearchLinks(b.Context(), accountID, query, 1); err != nil || total != want {
					b.Fatal(total, err)
				}
			}
		})
	}
}

// linksOf returns a store in which an account has n links, "link-1" to "link-n".
func linksOf(b *testing.B, n int) (links *postgres.Store, accountID int64) {
	b.Helper()
	dsn := engines.Postgres(b)
	links = openLinks(b, dsn)
	fill(b, openRaw(b, dsn), n)
	return links, 1
}

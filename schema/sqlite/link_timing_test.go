package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// manyLinks returns a store in which one account has n links, "link-1" to "link-n".
func manyLinks(tb testing.TB, n int) (*sqlite.Store, schema.Account) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "links.db")
	links := openLinks(tb, path)
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(tb, links.CreateAccount(tb.Context(), &owner))
	// One statement without the store, because CreateLink syncs the disk for each link.
	raw := openRaw(tb, path)
	for _, statement := range []string{
		`WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
		INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
		SELECT 1, 0, 'link-' || n, 'https://example.org/a/path/of/some/length?n=' || n, 1, n, n FROM n`,
		`UPDATE accounts SET link_count = ?1`,
	} {
		_, err := raw.ExecContext(tb.Context(), statement, n)
		testkit.Must(tb, err)
	}
	return links, owner
}

// openRaw opens a file without the store.
func openRaw(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	raw, err := sql.Open("sqlite", path+"?_busy_timeout=10000")
	testkit.Must(tb, err)
	tb.Cleanup(func() { raw.Close() })
	return raw
}

func BenchmarkLinks(b *testing.B) {
	links, owner := manyLinks(b, storetest.TimedLinks)
	storetest.BenchmarkLinkStores(b, links, owner.ID)
}

// BenchmarkCreateLink shows what group commit gains: a single caller waits for the disk alone.
func BenchmarkCreateLink(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			links, owner := manyLinks(b, 1)
			var n atomic.Int64
			create := func() error {
				link := schema.Link{
					AccountID: owner.ID, Hash: fmt.Sprintf("new-%d", n.Add(1)), URL: "https://example.org/a/path/of/some/length",
					Active: true, CreatedAt: time.Now(),
				}
				return links.CreateLink(b.Context(), &link)
			}
			b.ReportAllocs()
			b.ResetTimer()
			var group errgroup.Group
			group.SetLimit(callers)
			for range b.N {
				group.Go(create)
			}
			testkit.Must(b, group.Wait())
		})
	}
}

func BenchmarkOpenLinks(b *testing.B) {
	path := filepath.Join(b.TempDir(), "links.db")
	for b.Loop() {
		links, err := sqlite.Open(b.Context(), path)
		testkit.Must(b, err)
		testkit.Must(b, links.Close())
	}
}

package transfer_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/api/shorten"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/postgres"
	"linkstream/schema/testkit"
)

// insertBare inserts a thousand links by one statement with the checks of an import: that the account exists, that each alias is
// free, and that ordinals have no gaps.
const insertBare = `
	WITH owner AS MATERIALIZED (SELECT id, link_count FROM accounts WHERE id = $1 FOR NO KEY UPDATE),
		counted AS (UPDATE accounts SET link_count = link_count + cardinality($2::text[]) WHERE id = $1)
	INSERT INTO links (account_id, domain_id, hash, url, title, active, ordinal, created_at)
	SELECT owner.id, 0, w.hash, w.url, w.title, true, owner.link_count + w.place, now()
	FROM owner, unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS w (hash, url, title, place)
	ON CONFLICT (domain_id, hash) DO NOTHING`

// BenchmarkImport imports links into Postgres, creates as many by calls of CreateAll, and inserts as many by bare statements, in turns.
// ratio is the rate of imports per that of bare inserts; it is to be at least 0.5. heap is what is in use at most while rows are
// imported, garbage included.
func BenchmarkImport(b *testing.B) {
	const rows = 20_000
	dsn := engines.Postgres(b)
	store, err := postgres.Open(b.Context(), postgres.Config{DSN: dsn})
	testkit.Must(b, err)
	b.Cleanup(func() { testkit.Close(b, store) })
	raw, err := pgx.Connect(b.Context(), dsn)
	testkit.Must(b, err)
	b.Cleanup(func() { testkit.Must(b, raw.Close(context.Background())) })
	account := schema.Account{Email: fmt.Sprint(time.Now().UnixNano(), "@example.org"), CreatedAt: time.Now()}
	testkit.Must(b, store.CreateAccount(b.Context(), &account))
	list, err := blocklist.Open("", slog.New(slog.DiscardHandler))
	testkit.Must(b, err)
	shortener := shorten.New(schema.MustParseBaseURL("https://sho.rt"), store, store, list)
	importer := transfer.NewImporter(shortener, store, store)
	var importing, creating, inserting time.Duration
	var heap uint64
	n := 0
	next := func() (alias, longURL, title string) {
		n++
		return fmt.Sprintf("A%d", n), fmt.Sprintf("https://h%d.example.com/path/%d?query=1", n%500, n), fmt.Sprint("Title ", n)
	}
	for b.Loop() {
		began := time.Now()
		var requests []shorten.Request
		for range rows {
			alias, longURL, title := next()
			requests = append(requests, shorten.Request{AccountID: account.ID, LongURL: longURL, CustomAlias: &alias, KeepHash: true, Title: title})
		}
		for chunk := range slices.Chunk(requests, schema.MaxLinkBatch) {
			_, err := shortener.CreateAll(b.Context(), chunk)
			testkit.Must(b, err)
		}
		creating += time.Since(began)

		began = time.Now()
		for range rows / schema.MaxLinkBatch {
			var aliases, urls, titles []string
			for range schema.MaxLinkBatch {
				alias, longURL, title := next()
				aliases, urls, titles = append(aliases, alias), append(urls, longURL), append(titles, title)
			}
			tag, err := raw.Exec(b.Context(), insertBare, account.ID, aliases, urls, titles)
			testkit.Must(b, err)
			testkit.Equal(b, "rows", int(tag.RowsAffected()), schema.MaxLinkBatch)
		}
		inserting += time.Since(began)

		began = time.Now()
		r, w := io.Pipe()
		go func() {
			fmt.Fprintln(w, "alias,long_url,title")
			for range rows {
				alias, longURL, title := next()
				fmt.Fprintf(w, "%s,%s,%s\n", alias, longURL, title)
			}
			w.Close()
		}()
		report, err := importer.Import(b.Context(), account.ID, r, transfer.Options{Progress: func(transfer.Progress) {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			heap = max(heap, stats.HeapInuse)
		}})
		importing += time.Since(began)
		if err != nil || report.Created != rows {
			b.Fatalf("%+v, %v", report, err)
		}
	}
	links := float64(b.N * rows)
	b.ReportMetric(links/importing.Seconds(), "imported/s")
	b.ReportMetric(links/creating.Seconds(), "created/s")
	b.ReportMetric(links/inserting.Seconds(), "inserted/s")
	b.ReportMetric(inserting.Seconds()/importing.Seconds(), "ratio")
	b.ReportMetric(float64(heap)/(1<<20), "heap-MiB")
}

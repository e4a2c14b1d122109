package transfer_test

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"linkstream/api/shorten"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/postgres"
	"linkstream/schema/testkit"
)

// BenchmarkImport imports links into Postgres, and creates as many by calls of CreateAll in turns. ratio is the rate of imports per
// that of calls; it is to be at least 0.5.
func BenchmarkImport(b *testing.B) {
	const rows = 20_000
	store, err := postgres.Open(b.Context(), postgres.Config{DSN: engines.Postgres(b)})
	testkit.Must(b, err)
	b.Cleanup(func() { testkit.Close(b, store) })
	account := schema.Account{Email: fmt.Sprint(time.Now().UnixNano(), "@example.org"), CreatedAt: time.Now()}
	testkit.Must(b, store.CreateAccount(b.Context(), &account))
	list, err := blocklist.Open("", slog.New(slog.DiscardHandler))
	testkit.Must(b, err)
	shortener := shorten.New(schema.MustParseBaseURL("https://sho.rt"), store, store, list)
	importer := transfer.NewImporter(shortener, store, store)
	var importing, creating time.Duration
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
		r, w := io.Pipe()
		go func() {
			fmt.Fprintln(w, "alias,long_url,title")
			for range rows {
				alias, longURL, title := next()
				fmt.Fprintf(w, "%s,%s,%s\n", alias, longURL, title)
			}
			w.Close()
		}()
		report, err := importer.Import(b.Context(), account.ID, r, transfer.Options{})
		importing += time.Since(began)
		if err != nil || report.Created != rows {
			b.Fatalf("%+v, %v", report, err)
		}
	}
	b.ReportMetric(float64(b.N*rows)/importing.Seconds(), "imported/s")
	b.ReportMetric(float64(b.N*rows)/creating.Seconds(), "created/s")
	b.ReportMetric(creating.Seconds()/importing.Seconds(), "ratio")
}

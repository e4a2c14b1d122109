package sqlite_test

import (
	"flag"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// BenchmarkLinkReport measures reports of a link with clicks of 20 kinds on each day of eight years, of which all but those of today
// have settled.
func BenchmarkLinkReport(b *testing.B) {
	store := openClicks(b, filepath.Join(b.TempDir(), "clicks.db"))
	today, n := time.Now().UTC().Truncate(24*time.Hour), int64(0)
	for day := 8 * 365; day >= 0; day-- {
		at := today.AddDate(0, 0, -day)
		batch := &schema.ClickBatch{}
		batch.Reset(0, n)
		batch.Time = at
		for i := range 20 {
			n++
			pick := func(names ...string) string { return names[i%len(names)] }
			batch.Offset, batch.Lane, batch.Seq = append(batch.Offset, n-1), append(batch.Lane, schema.Lane{}), append(batch.Seq, uint64(n))
			batch.LinkID, batch.AccountID, batch.ClickedAt = append(batch.LinkID, 1), append(batch.AccountID, 1), append(batch.ClickedAt, at)
			batch.Device = append(batch.Device, schema.Device(pick("desktop", "mobile", "bot", "tablet")))
			batch.Browser, batch.OS = append(batch.Browser, pick("Chrome", "Firefox", "Safari")), append(batch.OS, pick("iOS", "Linux"))
			batch.Language, batch.Country = append(batch.Language, pick("de", "en", "fr")), append(batch.Country, pick("DE", "US", "FR"))
			batch.Referrer = append(batch.Referrer, pick("t.co", "example.org", "", "www.google.com", "duckduckgo.com"))
		}
		batch.Next = n
		store.SetNow(func() time.Time { return at })
		testkit.Must(b, store.InsertClicks(b.Context(), storetest.NoNames(batch)))
	}
	for name, days := range map[string]int{"days=30": 30, "all": 8 * 365} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := store.Report(b.Context(), storetest.Days(1, []int64{1}, today.AddDate(0, 0, 1-days), days))
				testkit.Must(b, err)
			}
		})
	}
}

func BenchmarkFlood(b *testing.B) {
	path := filepath.Join(b.TempDir(), "clicks.db")
	store, now := openClicks(b, path), time.Now()
	store.SetNow(func() time.Time { // rows settle with each batch
		now = now.Add(time.Hour)
		return now
	})
	storetest.BenchmarkFlood(b, store, *floodClicks)
	var rows, bytes int64
	testkit.Must(b, openRaw(b, path).QueryRow(`SELECT (SELECT count(*) FROM settled_facts) + (SELECT count(*) FROM recent),
		page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&rows, &bytes))
	b.Logf("%d rows of facts of %d clicks, %d MiB", rows, *floodClicks, bytes>>20)
}

var floodClicks = flag.Int("flood", 1_000_000, "`clicks` of BenchmarkFlood")

package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// TestVisitors settles the clicks of a store, copies it as a backup does, and goes on with the copy.
func TestVisitors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "clicks.db")
	store, copies := openClicks(t, path), 0
	storetest.TestVisitors(t, store, storetest.ManyVisitors, func() storetest.ClickStores {
		store.SetNow(func() time.Time { return time.Now().AddDate(10, 0, copies) }) // the next batch settles
		copies++
		to := filepath.Join(dir, fmt.Sprint("copy", copies))
		testkit.Must(t, sqlite.Copy(t.Context(), path, to))
		path, store = to, openClicks(t, to)
		return store
	})
}

// TestVisitorsAreBounded has a visitor with a new address for each click.
func TestVisitorsAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clicks.db")
	store, source, batch := openClicks(t, path), storetest.NewTraffic(), new(schema.ClickBatch)
	const batches, clicks = 12, 25_000
	for range batches {
		source.Fill(batch, 0, clicks)
		for i := range clicks {
			batch.LinkID[i], batch.AccountID[i] = storetest.HotLink, storetest.HotAccount
		}
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	var most int
	testkit.Must(t, openRaw(t, path).QueryRow(`SELECT max(n) FROM (SELECT count(*) AS n FROM visitors GROUP BY owner, day)`).Scan(&most))
	if most > 1<<15+1<<14 || most < 1<<13 {
		t.Errorf("a link and day has %d rows of visitors", most)
	}
	for _, links := range [][]int64{nil, {storetest.HotLink}, {storetest.HotLink, 2}} {
		report, err := store.Report(t.Context(), storetest.Days(storetest.HotAccount, links, source.Day, 1))
		testkit.Must(t, err)
		if got := report.Visitors.Total; got < batches*clicks*98/100 || got > batches*clicks*102/100 {
			t.Errorf("links %v: %d visitors instead of %d", links, got, batches*clicks)
		}
	}
}

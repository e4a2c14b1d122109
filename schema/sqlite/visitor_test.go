package sqlite_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitefile"
	"linkstream/schema/sqlitetest"
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
		testkit.Must(t, sqlitefile.Copy(t.Context(), path, to))
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
		sameNames(batch)
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	var most int
	testkit.Must(t, sqlitetest.Raw(t, path).QueryRow(`SELECT max(length(visitors)) / 20 FROM visitors`).Scan(&most))
	if most > 1<<15 || most < 1<<13 {
		t.Errorf("a link and day has %d visitors", most)
	}
	for _, links := range [][]int64{nil, {storetest.HotLink}, {storetest.HotLink, 2}} {
		report, err := store.Report(t.Context(), storetest.Days(storetest.HotAccount, links, source.Day, 1))
		testkit.Must(t, err)
		if got := report.Visitors.Total; got < batches*clicks*98/100 || got > batches*clicks*102/100 {
			t.Errorf("links %v: %d visitors instead of %d", links, got, batches*clicks)
		}
	}
}

// sameNames gives all clicks of a batch the same names, so that almost only visitors are counted.
func sameNames(batch *schema.ClickBatch) {
	for _, by := range schema.Dimensions() {
		clear(*batch.Names(by))
	}
}

// TestVisitorsOfTheLog reopens the store while visitors are merged.
func TestVisitorsOfTheLog(t *testing.T) {
	t.Parallel()
	const links, times, batches, clicks, visitors = 300, 4, 12, 3000, 500
	path := filepath.Join(t.TempDir(), "clicks.db")
	raw, source, batch := sqlitetest.Raw(t, path), storetest.NewTraffic(), new(schema.ClickBatch)
	seen := map[int64]map[uint64]bool{-storetest.HotAccount: {}}
	for link := range int64(links) {
		seen[link+1] = map[uint64]bool{}
	}
	random := rand.New(rand.NewPCG(1, 2))
	var underWay int
	for time := range times {
		store := openClicks(t, path)
		for range batches {
			source.Fill(batch, 0, clicks)
			for i := range clicks {
				link, visitor := 1+random.Int64N(links), random.Uint64N(visitors)*(1<<64/visitors)+1
				batch.LinkID[i], batch.AccountID[i], batch.Visitor[i] = link, storetest.HotAccount, visitor
				seen[link][visitor], seen[-storetest.HotAccount][visitor] = true, true
			}
			sameNames(batch)
			testkit.Must(t, store.InsertClicks(t.Context(), batch))
		}
		var logged, merged int
		testkit.Must(t, raw.QueryRow(`SELECT (SELECT sum(length(visits)) / 32 FROM visitor_log), (SELECT count(*) FROM `+
			`visitors)`).Scan(&logged, &merged))
		if logged > 3<<16 {
			t.Fatalf("the log has %d visits", logged)
		}
		if merged > 0 && merged <= links {
			underWay++
		}
		for _, owners := range [][]int64{nil, {1 + random.Int64N(links)}} {
			report, err := store.Report(t.Context(), storetest.Days(storetest.HotAccount, owners, source.Day, 1))
			testkit.Must(t, err)
			owner := int64(-storetest.HotAccount)
			if owners != nil {
				owner = owners[0]
			}
			testkit.Equal(t, fmt.Sprintf("visitors of %d, opened %d times", owner, time+1), report.Visitors.Total,
				int64(len(seen[owner])))
		}
	}
	if underWay == 0 {
		t.Error("no pass was under way when the store was opened anew")
	}
}

func FuzzVisitorSets(f *testing.F) {
	entry := func(hash byte, at string) string { return strings.Repeat(string(hash), 8) + at }
	f.Add([]byte("\x00"), []byte("\x03"))
	f.Add([]byte("\x00"+entry(1, "abcdefghijkl")+entry(9, "abcdefghijkl")),
		[]byte("\x01"+entry(1, "mnopqrstuvwx")+entry(2, "mnopqrstuvwx")))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		union, err := sqlite.UnionVisitors(bytes.Clone(one), bytes.Clone(other))
		if err != nil {
			return
		}
		if union[0] != max(one[0], other[0]) || len(union) > len(one)+len(other)-1 {
			t.Fatalf("the union is %x", union)
		}
		again, err := sqlite.UnionVisitors(bytes.Clone(union), bytes.Clone(union))
		testkit.Must(t, err)
		if !bytes.Equal(again, union) {
			t.Fatalf("the union with itself is %x instead of %x", again, union)
		}
	})
}

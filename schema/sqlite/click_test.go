package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// openClicks opens a file. A new one is a copy of a file that was migrated once; TestOpen, TestMigrate and
// TestProcesses open new files without.
func openClicks(t testing.TB, path string) *sqlite.ClickStore {
	t.Helper()
	clicks, err := sqlitetest.OpenClickStore(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { clicks.Close() })
	return clicks
}

func TestClickStore(t *testing.T) {
	storetest.TestClickStore(t, func(t *testing.T) (*sqlite.ClickStore, func() *sqlite.ClickStore) {
		path := filepath.Join(t.TempDir(), "clicks.db")
		clicks := openClicks(t, path)
		return clicks, func() *sqlite.ClickStore {
			testkit.Must(t, clicks.Close())
			return openClicks(t, path)
		}
	})
}

// Files have these numbers: another dimension changes none of them.
func TestNumbersOfDimensions(t *testing.T) {
	fixed := map[schema.Dimension]int{schema.ByDevice: 1, schema.ByBrowser: 2, schema.ByOS: 3, schema.ByLanguage: 4,
		schema.ByCountry: 5, schema.ByReferrer: 0, schema.ByRoute: -1, schema.ByCampaign: -2, schema.ByPath: -3}
	taken := map[int]schema.Dimension{}
	for _, by := range schema.Dimensions() {
		number := sqlite.DimensionNumber(by)
		if want, ok := fixed[by]; ok {
			testkit.Equal(t, string(by), number, want)
		}
		if other, ok := taken[number]; ok {
			t.Errorf("%s and %s have the number %d", by, other, number)
		}
		taken[number] = by
	}
}

// A dimension for which files have no room must not be counted as another one.
func TestRoomForDimensions(t *testing.T) {
	some := func(n int) []schema.Dimension { return make([]schema.Dimension, n) }
	refused := func(room func([]schema.Dimension) []schema.Dimension, n int) (refused bool) {
		defer func() { refused = recover() != nil }()
		room(some(n))
		return false
	}
	for n := range 9 {
		testkit.Equal(t, fmt.Sprint("no room for listed dimensions: ", n), refused(sqlite.InClient, n), n > 6)
		testkit.Equal(t, fmt.Sprint("no columns for written dimensions: ", n), refused(sqlite.WithColumns, n), n != 4)
	}
}

// The rows of a day are bounded, including rows that the store has counted before it was opened again.
func TestRowsOfADayAreBounded(t *testing.T) {
	const each, copied, later = schema.MaxQuarterRows / 80, 78, 4
	path := filepath.Join(t.TempDir(), "clicks.db")
	batch, n, day := new(schema.ClickBatch), 0, time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)
	open := func() *sqlite.ClickStore {
		store := openClicks(t, path)
		store.SetNow(func() time.Time { return day }) // no quarter is over
		return store
	}
	store := open()
	insert := func(quarter int) { // the same names in each quarter
		batch.Reset(0, int64(n))
		batch.Time = day.Add(time.Duration(quarter) * schema.ReportResolution)
		for i := range each {
			batch.Offset, batch.Lane, batch.Seq = append(batch.Offset, int64(n)), append(batch.Lane, schema.Lane{}),
				append(batch.Seq, uint64(n)+1)
			batch.LinkID, batch.AccountID, batch.ClickedAt = append(batch.LinkID, 1), append(batch.AccountID, 1),
				append(batch.ClickedAt, batch.Time)
			for _, by := range schema.Dimensions() {
				column := batch.Names(by)
				*column = append(*column, "any")
			}
			batch.Referrer[i], batch.Language[i] = fmt.Sprint(i%200), fmt.Sprint(i/200)
			n++
		}
		batch.Next = int64(n)
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	insert(0)
	testkit.Close(t, store)
	raw := sqlitetest.Raw(t, path)
	const copyTo = `INSERT INTO %[1]s (link_id, quarter, account_id, client, referrer, route, campaign, path, total)
		WITH RECURSIVE q (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM q WHERE n < ?2)
		SELECT link_id, quarter + n, account_id, client, referrer, route, campaign, path, total
		FROM recent CROSS JOIN q WHERE quarter = ?3`
	first := day.Unix() / int64(schema.ReportResolution/time.Second)
	for table, quarters := range map[string][2]int{"settled_facts": {1, copied / 2}, "recent": {copied/2 + 1, copied}} {
		_, err := raw.Exec(fmt.Sprintf(copyTo, table), quarters[0], quarters[1], first)
		testkit.Must(t, err)
	}
	store = open()
	for quarter := range later {
		insert(copied + 1 + quarter)
	}
	var rows, clicks int
	testkit.Must(t, raw.QueryRow("SELECT count(*), sum(total) FROM (SELECT total FROM settled_facts UNION ALL SELECT "+
		"total FROM recent)").Scan(&rows, &clicks))
	testkit.Equal(t, "clicks", clicks, n+copied*each)
	testkit.Equal(t, "rows", rows, schema.MaxQuarterRows+later-1) // the last quarters have a row of other names each
}

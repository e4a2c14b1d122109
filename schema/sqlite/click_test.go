package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlite/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// openClicks opens a file. A new one is a copy of a file that was migrated once; TestOpen, TestMigrate and TestProcesses open new files
// without.
func openClicks(t testing.TB, path string) *sqlite.ClickStore {
	t.Helper()
	clicks, err := sqlitetest.OpenClickStore(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { clicks.Close() })
	return clicks
}

func TestClickStore(t *testing.T) {
	storetest.TestClickStore(t, func(t *testing.T) (storetest.ClickStores, func() storetest.ClickStores) {
		path := filepath.Join(t.TempDir(), "clicks.db")
		clicks := openClicks(t, path)
		return clicks, func() storetest.ClickStores {
			testkit.Must(t, clicks.Close())
			return openClicks(t, path)
		}
	})
}

// Names of a quarter of an hour come again in the next ones, also when the service starts again.
func TestRowsOfADayAreBounded(t *testing.T) {
	const each, quarters, more = schema.MaxCombinations, schema.MaxQuarterRows / schema.MaxCombinations, 3
	path := filepath.Join(t.TempDir(), "clicks.db")
	store := openClicks(t, path)
	batch, n, day := new(schema.ClickBatch), 0, time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)
	for quarter := range quarters + more {
		batch.Reset(0, int64(n))
		batch.Time = day.Add(time.Duration(quarter) * schema.ReportResolution)
		for i := range each {
			batch.Offset, batch.Lane, batch.Seq = append(batch.Offset, int64(n)), append(batch.Lane, schema.Lane{}), append(batch.Seq, uint64(n)+1)
			batch.LinkID, batch.AccountID, batch.ClickedAt = append(batch.LinkID, 1), append(batch.AccountID, 1), append(batch.ClickedAt, batch.Time)
			for _, by := range schema.Dimensions() {
				column := batch.Names(by)
				*column = append(*column, "any")
			}
			batch.Referrer[i], batch.Language[i] = fmt.Sprint(i%200), fmt.Sprint(i/200)
			n++
		}
		batch.Next = int64(n)
		if quarter == quarters {
			testkit.Close(t, store)
			store = openClicks(t, path)
		}
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	var rows, clicks int
	testkit.Must(t, openRaw(t, path).QueryRow("SELECT count(*), sum(total) FROM (SELECT total FROM settled_facts UNION ALL SELECT total FROM recent)").Scan(&rows, &clicks))
	testkit.Equal(t, "clicks", clicks, n)
	testkit.Equal(t, "rows", rows, schema.MaxQuarterRows+more) // a row of other names in each quarter
}

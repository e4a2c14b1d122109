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

// answers are the answers of a store about its clicks.
type answers struct {
	Stats   []schema.Stats
	Counts  map[int64]int64
	Reports []schema.Report
	Export  map[string]int64
	Clicks  int64
}

// askAll asks for every count of a few links and their account.
func askAll(t *testing.T, store *sqlite.ClickStore, path string, day time.Time) (a answers) {
	t.Helper()
	a.Export = map[string]int64{}
	links := []int64{storetest.HotLink}
	counted, err := store.LinkStats(t.Context(), storetest.HotLink)
	testkit.Must(t, err)
	a.Stats = append(a.Stats, counted)
	rows, err := sqlitetest.Raw(t, path).Query(`SELECT link_id FROM settled_facts WHERE account_id = ?1 UNION SELECT `+
		`link_id FROM recent WHERE account_id = ?1 ORDER BY 1 LIMIT 20`, storetest.HotAccount)
	testkit.Must(t, err)
	for rows.Next() {
		var id int64
		testkit.Must(t, rows.Scan(&id))
		links = append(links, id)
	}
	testkit.Must(t, rows.Err())
	for _, id := range links[1:] {
		report, err := store.Report(t.Context(), storetest.Days(storetest.HotAccount, []int64{id}, day, 3))
		testkit.Must(t, err)
		a.Reports = append(a.Reports, report)
	}
	a.Counts, err = store.ClickCounts(t.Context(), 1, links)
	testkit.Must(t, err)
	for _, of := range [][]int64{nil, links} {
		for _, filter := range []map[schema.Dimension]string{
			nil, {schema.ByDevice: "mobile"}, {schema.ByReferrer: "host-0.example"},
			{schema.ByOS: "iOS", schema.ByCountry: "AZ"},
		} {
			for _, offset := range []time.Duration{0, 45 * time.Minute} {
				report, err := store.Report(t.Context(), schema.ReportQuery{AccountID: storetest.HotAccount, Links: of, Limit: 20,
					TopLinks: true,
					Previous: day.Add(offset), Bounds: []time.Time{day.Add(24*time.Hour + offset), day.Add(48*time.Hour + offset),
						day.Add(72*time.Hour + offset)}, Filter: filter})
				testkit.Must(t, err)
				a.Reports = append(a.Reports, report)
			}
		}
	}
	testkit.Must(t, sqlite.ExportClicks(t.Context(), path, func(c *schema.ClickCount) error {
		a.Clicks += c.Total
		a.Export[fmt.Sprint(c.LinkID, c.AccountID, c.Begin, c.Names)] += c.Total
		return nil
	}))
	return a
}

func recentRows(t *testing.T, path string) (rows int64) {
	t.Helper()
	testkit.Must(t, sqlitetest.Raw(t, path).QueryRow(`SELECT count(*) FROM recent`).Scan(&rows))
	return rows
}

// TestSettle counts the same clicks on stores that settle them at different times.
func TestSettle(t *testing.T) {
	t.Parallel()
	const batches, clicks = 12, 200
	first := time.Date(2026, time.November, 19, 23, 0, 0, 0, time.UTC)
	count := func(t *testing.T, now func(batch int) time.Time) (answers, int64) {
		path := filepath.Join(t.TempDir(), "clicks.db")
		store, source, batch := openClicks(t, path), storetest.NewTraffic(), new(schema.ClickBatch)
		for i := range batches {
			// the later half comes for quarters that may have settled
			source.Day = first.Add(time.Duration(i%6) * 10 * time.Hour)
			source.Fill(batch, 0, clicks)
			for j := 0; j < clicks; j += 2 {
				batch.LinkID[j], batch.AccountID[j] = storetest.HotLink, storetest.HotAccount
			}
			store.SetNow(func() time.Time { return now(i) })
			testkit.Must(t, store.InsertClicks(t.Context(), batch))
		}
		return askAll(t, store, path, first.Truncate(24*time.Hour)), recentRows(t, path)
	}
	want, left := count(t, func(int) time.Time { return first.Add(-time.Hour) })
	if left < batches*clicks/2 || want.Clicks != batches*clicks {
		t.Fatalf("%d of %d rows are recent, although their quarters have not come", left, want.Clicks)
	}
	for _, test := range []struct {
		name    string
		now     func(batch int) time.Time
		settled bool // most of them
	}{
		{"after each batch", func(i int) time.Time { return first.Add(1000*time.Hour + time.Duration(i)*time.Hour) }, true},
		{"when their quarter is over", func(i int) time.Time { return first.Add(time.Duration(i%6) * 10 * time.Hour) }, true},
		{"once, and those that come later not", func(int) time.Time { return first.Add(1000 * time.Hour) }, false},
		{"also after the clock was set back",
			func(i int) time.Time { return first.Add(1000*time.Hour - time.Duration(i)*time.Hour) }, true},
	} {
		t.Run("counts stay the same, settled "+test.name, func(t *testing.T) {
			t.Parallel()
			got, left := count(t, test.now)
			testkit.Equal(t, "answers", got, want)
			if settled := left < batches*clicks/2; settled != test.settled || left == batches*clicks {
				t.Errorf("%d rows are recent", left)
			}
		})
	}
	t.Run("a pass moves a few links with each batch, and all in the end", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "clicks.db")
		store, source, batch := openClicks(t, path), storetest.NewTraffic(), new(schema.ClickBatch)
		store.SetNow(func() time.Time { return first.Add(-time.Hour) })
		source.Day = first
		source.Fill(batch, 0, 4_000)
		for i := range 1_500 { // more on one link than a pass looks at with a batch
			batch.LinkID[i], batch.AccountID[i] = storetest.HotLink, storetest.HotAccount
		}
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
		before := recentRows(t, path)
		store.SetNow(func() time.Time { return first.Add(time.Hour) })
		const later = 10
		for i := range later {
			source.Day = first.Add(time.Hour)
			source.Fill(batch, 0, 1)
			testkit.Must(t, store.InsertClicks(t.Context(), batch))
			if rows := recentRows(t, path); i == 0 && (rows > before-500 || rows < before-2500) {
				t.Fatalf("%d of %d rows are recent after a batch", rows, before)
			}
		}
		if rows := recentRows(t, path); rows != later {
			t.Errorf("%d rows are recent, want those of the last quarter", rows)
		}
	})
}

// TestNames counts more names than recent has numbers for.
func TestNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clicks.db")
	store, source, batch := openClicks(t, path), storetest.NewTraffic(), new(schema.ClickBatch)
	_, err := sqlitetest.Raw(t, path).Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1019)
		INSERT INTO names (name) SELECT 'name ' || i FROM n`)
	testkit.Must(t, err)
	source.Fill(batch, 0, 100)
	for i := range batch.Browser {
		batch.LinkID[i], batch.Device[i], batch.Browser[i], batch.OS[i] = 1, schema.Desktop, "name 7", ""
		batch.Language[i], batch.Country[i] = "", "new"
	}
	testkit.Must(t, store.InsertClicks(t.Context(), batch))
	report, err := store.Report(t.Context(), storetest.Days(1, []int64{1}, source.Day, 1))
	testkit.Must(t, err)
	testkit.Equal(t, "browsers", report.Names[schema.ByBrowser], []schema.NameCount{{Name: "name 7", Total: 100}})
	testkit.Equal(t, "countries", report.Names[schema.ByCountry], []schema.NameCount{{Name: schema.OtherName, Total: 100}})
	testkit.Equal(t, "devices", report.Names[schema.ByDevice], []schema.NameCount{{Name: schema.Desktop, Total: 100}})
}

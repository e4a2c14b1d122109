package sqlite_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitefile"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// Clicks of 1.0.0 have no path, and a file whose data has moved stays frozen.
func TestClicksOfEarlierReleases(t *testing.T) {
	const quarter, day = 1_983_360, 20_660 // 2026-07-26
	for name, frozen := range map[string]bool{"a service": false, "a service that has moved": true} {
		t.Run("of "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "clicks.db")
			testkit.Must(t, sqlitetest.MigrateTo(t.Context(), path, os.DirFS("migrations"), 1))
			raw := sqlitetest.Raw(t, path)
			exec := func(statement string) {
				_, err := raw.ExecContext(t.Context(), statement)
				testkit.Must(t, err)
			}
			exec("INSERT INTO names VALUES (3, 'desktop')")
			for _, table := range []string{"recent", "settled_facts"} {
				exec(fmt.Sprintf("INSERT INTO %s VALUES (1, %d, 1, 3, 'a.example', '', '', 5)", table, quarter))
			}
			exec(fmt.Sprintf("INSERT INTO owned_quarters VALUES (1, %d, 10, 0)", quarter))
			exec(fmt.Sprintf("INSERT INTO settled_quarters VALUES (1, %d, 5, 0)", quarter))
			exec(fmt.Sprintf("INSERT INTO settled_owned VALUES (1, %d, 1, 5, 0)", day))
			exec("INSERT INTO settled_totals VALUES (1, 5)")
			for _, table := range []string{"settled_names", "settled_owned_names"} {
				exec(fmt.Sprintf("INSERT INTO %s VALUES (1, 1, %d, 3, 5, 0)", table, day))
				for dimension := 2; dimension <= 5; dimension++ {
					exec(fmt.Sprintf("INSERT INTO %s VALUES (1, %d, %d, 0, 5, 0)", table, dimension, day))
				}
				for dimension, name := range []string{"a.example", "", ""} {
					exec(fmt.Sprintf("INSERT INTO %s VALUES (1, %d, %d, '%s', 5, 0)", table, -dimension, day, name))
				}
			}
			if frozen {
				_, err := sqlitefile.Freeze(t.Context(), path, schema.MoveID{1})
				testkit.Must(t, err)
			}
			store, err := sqlite.OpenClickStore(t.Context(), path)
			testkit.Must(t, err)
			defer testkit.Close(t, store)
			sums, err := store.ClickSums(t.Context())
			testkit.Must(t, err)
			for _, table := range slices.Sorted(maps.Keys(sums)) {
				testkit.Equal(t, table, sums[table], 10)
			}
			for _, links := range [][]int64{nil, {1}} {
				for _, filter := range []map[schema.Dimension]string{nil, {schema.ByPath: ""}} {
					q := storetest.Days(1, links, time.Unix(day*86400, 0), 1)
					q.Filter = filter
					report, err := store.Report(t.Context(), q)
					testkit.Must(t, err)
					testkit.Equal(t, "clicks", report.Series, []schema.Period{{People: 10}})
					for by, name := range map[schema.Dimension]string{schema.ByPath: "", schema.ByReferrer: "a.example"} {
						testkit.Equal(t, string(by), report.Names[by], []schema.NameCount{{Name: name, Total: 10}})
					}
				}
			}
			if err := store.InsertClicks(t.Context(), anyClick()); errors.Is(err, schema.ErrMoved) != frozen {
				t.Errorf("error %v", err)
			}
		})
	}
}

// anyClick returns a batch of one click.
func anyClick() *schema.ClickBatch {
	batch := new(schema.ClickBatch)
	storetest.NewTraffic().Fill(batch, 0, 1)
	return batch
}

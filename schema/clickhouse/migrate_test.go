//go:build engines

package clickhouse_test

import (
	"os"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// The SHA-256 of released migrations.
var released = map[string]string{"00001_clicks.sql": "792aec53b72760c2199e55b05e1009e960153179a3df21fc113df4245b5e49b0"}

func TestMigrations(t *testing.T) {
	files := os.DirFS("migrations")
	storetest.TestMigrations(t, files, released, func(t *testing.T, from int64) []string {
		dsn := engines.ClickHouse(t)
		testkit.Must(t, clickhouse.MigrateTo(t.Context(), openDB(t, dsn), from))
		migrateClicks(t, dsn)
		return catalogue(t, openRaw(t, dsn))
	})
}

// migrateClicks executes the migrations of a database even if it is empty, unlike openClicks.
func migrateClicks(t *testing.T, dsn string) {
	t.Helper()
	clicks, err := clickhouse.OpenClickStore(t.Context(), clickhouse.Config{DSN: dsn})
	testkit.Must(t, err)
	testkit.Must(t, clicks.Close())
}

// Most tests have tables that were not made by the migrations.
func TestTablesOfTestsAreThoseOfTheMigrations(t *testing.T) {
	migrated, first, next := engines.ClickHouse(t), engines.ClickHouse(t), engines.ClickHouse(t)
	migrateClicks(t, migrated)
	describe := func(dsn string) []string {
		const versions = `SELECT arrayStringConcat(groupArray(concat(toString(version_id), ':', toString(is_applied))), ' ')
			FROM (SELECT * FROM goose_db_version ORDER BY version_id)`
		raw, applied := openRaw(t, dsn), ""
		testkit.Must(t, raw.QueryRow(t.Context(), versions).Scan(&applied))
		return append(catalogue(t, raw), applied)
	}
	for _, dsn := range []string{first, next} { // if it is the first of the process, it is migrated
		openClicks(t, dsn)
		testkit.Equal(t, "tables", describe(dsn), describe(migrated))
	}
}

// catalogue returns the statements that would create the tables, and their columns and projections.
func catalogue(t *testing.T, raw driver.Conn) (all []string) {
	t.Helper()
	rows, err := raw.Query(t.Context(), `
		SELECT row FROM (
		SELECT arrayStringConcat(['table', name, replaceAll(create_table_query,
			concat(currentDatabase(), '.'), '')], ' ') AS row
		FROM system.tables WHERE database = currentDatabase()
		UNION ALL
		SELECT arrayStringConcat(['column', table, toString(position), name, type, default_kind, default_expression,
			compression_codec], ' ')
		FROM system.columns WHERE database = currentDatabase()
		UNION ALL
		SELECT arrayStringConcat(['projection', table, name, query], ' ')
		FROM system.projections WHERE database = currentDatabase()
		UNION ALL
		SELECT arrayStringConcat(['index', table, name, expr], ' ')
		FROM system.data_skipping_indices WHERE database = currentDatabase()
		) ORDER BY row`)
	testkit.Must(t, err)
	defer testkit.Close(t, rows)
	for rows.Next() {
		var row string
		testkit.Must(t, rows.Scan(&row))
		all = append(all, row)
	}
	testkit.Must(t, rows.Err())
	return all
}

// Clicks of 1.0.0 have no path. They are counted while the projections are built again, and afterwards.
func TestClicksOfEarlierReleases(t *testing.T) {
	dsn := engines.ClickHouse(t)
	testkit.Must(t, clickhouse.MigrateTo(t.Context(), openDB(t, dsn), 1))
	raw := openRaw(t, dsn)
	day := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)
	exec(t, raw, `INSERT INTO clicks (link_id, account_id, clicked_at, device, referrer, month, kafka_partition,
			kafka_offset, kafka_next, incarnation, lane, seq)
		SELECT 1 + number % 3, 1, toDateTime64('2026-11-21 10:00:00', 3, 'UTC') + number % 3600, 'mobile', 'a.example',
			202611, 0, number, 0, '0123456789abcdef', 1, number + 1 FROM numbers(900)`)
	store, err := clickhouse.OpenClickStore(t.Context(), clickhouse.Config{DSN: dsn})
	testkit.Must(t, err)
	defer testkit.Close(t, store)
	check := func() {
		t.Helper()
		for _, links := range [][]int64{nil, {1, 2, 3}} {
			for _, filter := range []map[schema.Dimension]string{nil, {schema.ByPath: ""}} {
				q := storetest.Days(1, links, day, 1)
				q.Filter = filter
				report, err := store.Report(t.Context(), q)
				testkit.Must(t, err)
				testkit.Equal(t, "clicks", report.Series, []schema.Period{{People: 900}})
				for by, name := range map[schema.Dimension]string{schema.ByPath: "", schema.ByReferrer: "a.example"} {
					testkit.Equal(t, string(by), report.Names[by], []schema.NameCount{{Name: name, Total: 900}})
				}
			}
		}
	}
	check()
	testkit.Eventually(t, "the projections are built", func() bool {
		const pending = "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done"
		return number(t, raw, pending) == 0
	})
	check()
	wantExactProjections(t, raw)
}

func TestOtherSchemas(t *testing.T) {
	dsn := engines.ClickHouse(t)
	migrateClicks(t, dsn)
	raw := openRaw(t, dsn)
	open := func() error {
		store, err := clickhouse.OpenCurrentClickStore(t.Context(), clickhouse.Config{DSN: dsn})
		if err == nil {
			err = store.Close()
		}
		return err
	}
	storetest.TestOtherSchemas(t, open,
		func(t *testing.T, statement string) { testkit.Must(t, raw.Exec(t.Context(), statement)) },
		func(t *testing.T) (all []int64) {
			const versions = "SELECT arraySort(groupArray(version_id)) FROM goose_db_version"
			testkit.Must(t, raw.QueryRow(t.Context(), versions).Scan(&all))
			return all
		})
}

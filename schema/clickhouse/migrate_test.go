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

func TestMigrations(t *testing.T) {
	files := os.DirFS("migrations")
	storetest.TestFrozenMigrations(t, files, map[string]string{
		"00001_clicks.sql":             "a4c575dbdd8ee0e65c7baf0c277fe033f8c4d32dc34a3a92317b00f2083abd07",
		"00002_reports.sql":            "0fd3ca8733c72fc5362c306a484f64f95094df2f2cea53149a48a159ae7ca2f0",
		"00004_log_epochs.sql":         "bd4c4a9c030a0e7a9e0f40ff355f610671910f7b0eb9bc66f50deb55e044c62d",
		"00005_weights.sql":            "891a0841854a78f35790716d776033e9b16e7015980641397bc133860046bddf",
		"00006_gaps.sql":               "b979b40fdcc249486d02f864f2ff25efbdbed03f6e8fbba46b5907ea22859811",
		"00007_dimensions.sql":         "b725c27068c83fc063b675fc4cb732eb87f765d16ffa827e2246850e674a0ba4",
		"00008_narrow_projections.sql": "c95442be3dcbf68d677b33e57309c3e8ffe55e17019dd5dfb130bc88cbd9e118",
		"00009_small_blocks.sql":       "80fa971c498193921e0b6b16307b8e7930cf6918d963d96391d0493c54774b4a",
		"00003_insert_before.sql":      "08af9e89ce93e733e6dba523893a734c7b92803bef083b018c91c0c15db590c8",
	})
	storetest.TestUpgrades(t, files, func(t *testing.T, from int64) []string {
		dsn := engines.ClickHouse(t)
		testkit.Must(t, clickhouse.MigrateTo(t.Context(), openDB(t, dsn), from))
		migrateClicks(t, dsn)
		if from > 0 { // a new table does without what programs of earlier releases read
			done, err := clickhouse.Retire(t.Context(), openDB(t, dsn))
			if err != nil || !done {
				t.Fatalf("projections of earlier releases: dropped %v, error %v", done, err)
			}
		}
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
		SELECT arrayStringConcat(['table', name, replaceAll(create_table_query, concat(currentDatabase(), '.'), '')], ' ') AS row
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

// TestUpgradedClicks opens a table whose rows were written before reports came. Its parts get the new projections only
// when merges are started: until then the reports read rows.
func TestUpgradedClicks(t *testing.T) {
	dsn := engines.ClickHouse(t)
	raw := openRaw(t, dsn)
	testkit.Must(t, clickhouse.MigrateTo(t.Context(), openDB(t, dsn), 1))
	exec(t, raw, `INSERT INTO clicks
			(link_id, clicked_at, device, browser, kafka_offset, kafka_next, incarnation, lane, seq, month)
		SELECT 7, toDateTime64('2026-11-20 12:00:00', 3, 'UTC') + number, if(number % 3 = 0, 'bot', 'mobile'), 'Chrome',
			number, if(number = 29999, 30000, 0), unhex(repeat('00', 16)), 3, number + 1, 202611 FROM numbers(30000)`)
	exec(t, raw, `SYSTEM STOP MERGES clicks`) // this also stops the background work of migration 2
	old := make([]storetest.OldClick, 30_000)
	for i := range old {
		device := schema.Mobile
		if i%3 == 0 {
			device = schema.Bot
		}
		at := time.Date(2026, time.November, 20, 12, 0, i, 0, time.UTC)
		old[i] = storetest.OldClick{At: at, Device: device, Browser: "Chrome"}
	}
	storetest.TestUpgradedClicks(t, openClicks(t, dsn), old, func(t *testing.T) {
		exec(t, raw, `SYSTEM START MERGES clicks`)
		ofTable := ` WHERE database = currentDatabase() AND table = 'clicks' AND `
		parts := `SELECT count() FROM system.projection_parts` + ofTable + `active AND name IN ('link_referrers', 'weighted_accounts')`
		running := `SELECT count() FROM system.mutations` + ofTable + `NOT is_done`
		testkit.Eventually(t, "the mutations end", func() bool { return number(t, raw, running) == 0 })
		if n := number(t, raw, parts); n < 2 || n%2 != 0 {
			t.Errorf("%d parts of new projections", n)
		}
	})
}

//go:build engines

package clickhouse_test

import (
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// TestInsertsAreDurable reads the settings of a fresh table and of an upgraded one. A worker commits a click once the
// insert is answered, so it must survive a power failure of the server. A worker may send a batch again for as long as
// an insert is valid: the server must keep more tokens than it gets in this time.
func TestInsertsAreDurable(t *testing.T) {
	dsn := engines.ClickHouse(t)
	openClicks(t, dsn)
	var engine string
	testkit.Must(t, openRaw(t, dsn).QueryRow(t.Context(),
		"SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = 'clicks'").Scan(&engine))
	for _, setting := range []string{"fsync_after_insert = 1", "fsync_part_directory = 1",
		"non_replicated_deduplication_window = 10000"} {
		if !strings.Contains(engine, setting) {
			t.Errorf("%s is not in %s", setting, engine)
		}
	}
}

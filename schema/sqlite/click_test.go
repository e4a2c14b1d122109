package sqlite_test

import (
	"path/filepath"
	"testing"

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

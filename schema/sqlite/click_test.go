package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func openClicks(t testing.TB, path string) *sqlite.Clicks {
	t.Helper()
	clicks, err := sqlite.OpenClicks(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { clicks.Close() })
	return clicks
}

func TestClicks(t *testing.T) {
	storetest.TestClickStore(t, func(t *testing.T) (storetest.ClickStores, func() storetest.ClickStores) {
		path := filepath.Join(t.TempDir(), "clicks.db")
		clicks := openClicks(t, path)
		return clicks, func() storetest.ClickStores {
			testkit.Must(t, clicks.Close())
			return openClicks(t, path)
		}
	})
}

func TestInsertClicks(t *testing.T) {
	t.Run("refuses a batch beyond the position, which would leave a gap", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "clicks.db")
		clicks := openClicks(t, path)
		batch, source := new(schema.ClickBatch), newTraffic()
		source.next = 10
		source.fill(batch, 5)
		testkit.WantCode(t, clicks.InsertClicks(t.Context(), batch), schema.CodeConflict)
		allCounted(t, path, 0)
	})
}

package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
)

func openClicks(t testing.TB, path string) *sqlite.Clicks {
	t.Helper()
	clicks, err := sqlite.OpenClicks(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { clicks.Close() })
	return clicks
}

func TestClicks(t *testing.T) {
	storetest.TestClickStore(t, func(t *testing.T) (storetest.ClickStores, func() storetest.ClickStores) {
		path := filepath.Join(t.TempDir(), "clicks.db")
		clicks := openClicks(t, path)
		return clicks, func() storetest.ClickStores {
			if err := clicks.Close(); err != nil {
				t.Fatal(err)
			}
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
		if err := clicks.InsertClicks(t.Context(), batch); schema.ErrorCode(err) != schema.CodeConflict {
			t.Fatalf("got error %v", err)
		}
		allCounted(t, path, 0)
	})
}

package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// openLinks is openClicks for links.
func openLinks(t testing.TB, path string) *linkstore.Store {
	t.Helper()
	links, err := sqlitetest.Open(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { links.Close() })
	return links
}

// openFresh is a storetest.Open.
func openFresh(t *testing.T) (store schema.Database, reopen func() schema.Database) {
	path := filepath.Join(t.TempDir(), "links.db")
	links := openLinks(t, path)
	return links, func() schema.Database {
		testkit.Must(t, links.Close())
		return openLinks(t, path)
	}
}

func TestStore(t *testing.T) { storetest.TestDatabase(t, openFresh) }
